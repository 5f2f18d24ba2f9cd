"""`model/signs/__init__.py` lists every question that can be asked of a picture."""

import importlib
import inspect
import pkgutil

from stepline.model import signs
from stepline.model.picture.picture import Picture
from stepline.model.picture.sign import SIGNS

HERE = signs.__name__
MODULES = [
    importlib.import_module(f"{HERE}.{module.name}") for module in pkgutil.iter_modules(signs.__path__)
]


def listed() -> set[str]:
    """The names of the table in the docstring, each with the file it stands under."""
    places, file = set(), ""
    for line in (signs.__doc__ or "").splitlines():
        if line.startswith("  "):
            file = line[2:23].strip() or file
            places.add(f"{HERE}.{file}.{line[23:].split()[0]}")
    return places


def test_the_list_holds_every_sign_and_no_other():
    assert listed() == {place for place in SIGNS if place.startswith(f"{HERE}.")}


def test_what_is_asked_of_the_picture_alone_is_a_sign():
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith("_")
            asked = [each.annotation for each in inspect.signature(function).parameters.values()]
            if own and asked == [Picture]:
                assert f"{module.__name__}.{name}" in SIGNS
