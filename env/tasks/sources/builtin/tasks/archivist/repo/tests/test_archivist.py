import pytest

from archivist import Desk, PermissionDenied, User


@pytest.fixture
def ada():
    return User("ada")


@pytest.fixture
def editor():
    return User("ed", editor=True)


@pytest.fixture
def desk(ada):
    desk = Desk()
    desk.submit(ada, "minutes", "first draft")
    return desk


def test_owner_saves(desk, ada):
    desk.save(ada, "minutes", "second draft")
    assert desk.read(ada, "minutes") == "second draft"


def test_stranger_may_read_but_not_save(desk):
    stranger = User("sam")
    assert desk.read(stranger, "minutes") == "first draft"
    with pytest.raises(PermissionDenied):
        desk.save(stranger, "minutes", "scribble")


def test_editor_saves_everything(desk, editor):
    desk.save(editor, "minutes", "corrected")
    assert desk.protocol[-1] == "ed saved minutes"


def test_locked_document(desk, ada, editor):
    desk.lock(editor, "minutes")
    with pytest.raises(PermissionDenied):
        desk.save(ada, "minutes", "too late")
    desk.save(editor, "minutes", "final")


def test_suspended_editor(desk, editor):
    editor.suspended = True
    with pytest.raises(PermissionDenied):
        desk.save(editor, "minutes", "corrected")


def test_suspended_account_submits_nothing(desk, ada):
    ada.suspended = True
    with pytest.raises(PermissionDenied):
        desk.submit(ada, "memo")


def test_suspended_account_writes_nowhere(desk, ada):
    desk.submit(ada, "memo", "buy ink")
    assert desk.writable(ada) == ["memo", "minutes"]
    ada.suspended = True
    assert desk.writable(ada) == []


def test_title_taken(desk, editor):
    with pytest.raises(ValueError):
        desk.submit(editor, "minutes")
