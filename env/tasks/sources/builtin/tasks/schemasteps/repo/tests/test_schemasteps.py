import pytest

from schemasteps import Runner, Schema, SchemaError, load_steps

FILES = {
    "1_people.step": "create_table people id name\n",
    "2_mail.step": "add_column people mail\n",
    "3_towns.step": "create_table towns id name\n",
}

LATER = {
    "9_orders.step": "create_table orders id\n",
    "10_order_total.step": "add_column orders total\n",
    "11_order_sum.step": "rename_column orders total sum\n",
}


def test_steps_are_read():
    steps = load_steps(FILES)
    assert [step.name for step in steps] == ["people", "mail", "towns"]
    assert steps[1].commands == [("add_column", ["people", "mail"])]


def test_name_that_is_no_step():
    with pytest.raises(ValueError):
        load_steps({"notes.txt": ""})


def test_number_taken_twice():
    with pytest.raises(ValueError):
        load_steps({"1_people.step": "", "1_towns.step": ""})


def test_upgrade_from_nothing():
    schema = Schema()
    assert Runner(schema).upgrade(load_steps(FILES)) == 3
    assert schema.describe() == {"people": ["id", "name", "mail"], "towns": ["id", "name"]}


def test_upgrade_twice():
    runner = Runner(Schema())
    runner.upgrade(load_steps(FILES))
    assert runner.upgrade(load_steps(FILES)) == 0
    assert runner.done == [1, 2, 3]


def test_step_that_does_not_fit():
    with pytest.raises(SchemaError):
        Runner(Schema()).upgrade(load_steps({"1_mail.step": "add_column people mail"}))


def test_unknown_operation():
    with pytest.raises(ValueError):
        Runner(Schema()).upgrade(load_steps({"1_mail.step": "paint people green"}))


def test_upgrade_with_many_steps():
    schema = Schema()
    runner = Runner(schema)
    runner.upgrade(load_steps(FILES))
    runner.upgrade(load_steps(dict(FILES, **LATER)))
    assert schema.describe()["orders"] == ["id", "sum"]
    assert runner.done == [1, 2, 3, 9, 10, 11]
