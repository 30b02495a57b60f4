import pytest

from lettermerge import Mailing, MissingField, Scope, Template, TemplateError


def test_fields_in_order():
    assert Template("{greeting} {name|friend}, {greeting}").fields() == ["greeting", "name", "greeting"]


def test_bad_field_name():
    with pytest.raises(TemplateError):
        Template("Dear {1st name}")


def test_scope_asks_its_parent():
    parent = Scope()
    parent.set("town", "Delft")
    assert Scope(parent).get("Town") == "Delft"


def test_field_nobody_filled():
    with pytest.raises(MissingField):
        Template("{shoe_size}").render(Scope())


def test_common_fields():
    mailing = Mailing("{name}, yours, {sender}", sender="The Club")
    assert mailing.letter({"name": "Ada"}) == "Ada, yours, The Club"


def test_letters_follow_the_list():
    mailing = Mailing("Hello {name}!")
    assert mailing.letters([{"name": "Ada"}, {"name": "Bo"}]) == ["Hello Ada!", "Hello Bo!"]


def test_fallback_for_those_without_a_title():
    mailing = Mailing("Dear {title|member} {surname}")
    assert mailing.letters([
        {"title": "Dr", "surname": "Okafor"},
        {"surname": "Lind"},
    ]) == ["Dear Dr Okafor", "Dear member Lind"]


def test_mailings_do_not_share_fields():
    Mailing("{place}", place="Ghent").letter({})
    with pytest.raises(MissingField):
        Mailing("{place}").letter({})
