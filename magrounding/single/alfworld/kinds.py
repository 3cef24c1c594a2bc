"""What our rooms are furnished with, what lies there, and what can be done with it; names are ALFRED's."""

from __future__ import annotations

_FOOD = "Apple Bread Egg Lettuce Potato Tomato"
_DISHES = "Bowl Cup Mug Plate"
_POTS = "Kettle Pan Pot"
_CUTLERY = "ButterKnife Fork Knife Ladle Spatula Spoon"
_DRINKS = "Glassbottle WineBottle"
_SHAKERS = "PepperShaker SaltShaker"
_SPRAYS = "SoapBottle SprayBottle"
_READING = "Book Newspaper"
_POCKET = "CD CellPhone CreditCard KeyChain Pen Pencil RemoteControl Watch"
_CARE = "Cloth DishSponge HandTowel SoapBar TissueBox ToiletPaper"
_SHOWN = "AlarmClock Candle Statue Vase WateringCan"
_LARGE = "Box Laptop"
_SEATED = f"{_READING} {_LARGE} CellPhone CreditCard KeyChain Pillow RemoteControl"
_DISPLAYED = f"{_READING} {_POCKET} {_SHOWN} {_DISHES} Box TissueBox {_DRINKS}"
_KITCHENWARE = f"{_FOOD} {_DISHES} {_POTS} {_CUTLERY} {_DRINKS} {_SHAKERS} {_SPRAYS}"
_ANYTHING = f"{_KITCHENWARE} {_READING} {_POCKET} {_CARE} {_SHOWN} {_LARGE}"

HOLDS = {
    receptacle: frozenset(objects.split())
    for receptacle, objects in {
        "ArmChair": _SEATED,
        "BathtubBasin": "Cloth DishSponge HandTowel SoapBar",
        "Bed": f"{_READING} BaseballBat BasketBall CellPhone Laptop Pillow TennisRacket",
        "Cabinet": f"{_DISHES} {_POTS} {_DRINKS} {_SHAKERS} {_SPRAYS} {_READING} {_CARE} Candle Ladle Vase",
        "Cart": f"{_CARE} {_SPRAYS} Candle Statue Vase",
        "CoffeeMachine": "Mug",
        "CoffeeTable": f"{_ANYTHING} DeskLamp",
        "CounterTop": _ANYTHING,
        "Desk": f"{_DISPLAYED} Laptop BasketBall TennisRacket DeskLamp",
        "DiningTable": _ANYTHING,
        "Drawer": f"{_CUTLERY} {_POCKET} {_READING} {_SHAKERS} {_CARE} Candle",
        "Dresser": f"{_DISPLAYED} Laptop BasketBall TennisRacket DeskLamp",
        "Fridge": f"{_FOOD} {_DISHES} {_DRINKS} Pan Pot",
        "GarbageCan": f"{_FOOD} {_SPRAYS} Newspaper Pen Pencil CD Cloth DishSponge SoapBar TissueBox ToiletPaper",
        "HandTowelHolder": "HandTowel",
        "LaundryHamper": "Cloth",
        "Microwave": f"{_DISHES} Apple Bread Egg Potato Tomato",
        "Ottoman": _SEATED,
        "Safe": "CD CellPhone CreditCard KeyChain Statue Vase Watch",
        "Shelf": f"{_DISPLAYED} {_CARE} {_SPRAYS} {_SHAKERS} Kettle Pot",
        "SideTable": f"{_ANYTHING} DeskLamp",
        "SinkBasin": f"{_DISHES} {_POTS} {_CUTLERY} Apple Egg Lettuce Potato Tomato Cloth DishSponge SoapBar",
        "Sofa": _SEATED,
        "StoveBurner": _POTS,
        "Toaster": "",
        "Toilet": f"{_CARE} {_SPRAYS} Candle Newspaper",
        "ToiletPaperHanger": "ToiletPaper",
        "TowelHolder": "Towel",
        "TVStand": "RemoteControl TissueBox Statue Newspaper",
    }.items()
}
"""Receptacle → the kinds of objects that it can contain."""

OPENABLE = frozenset("Cabinet Drawer Fridge Microwave Safe".split())
ROOMY = frozenset("Bed Cart CoffeeTable CounterTop Desk DiningTable Dresser Fridge Shelf SideTable Sofa".split())
"""Receptacles in which up to ROOMY_SPACE objects lie at first; in the others up to NARROW_SPACE."""
ROOMY_SPACE, NARROW_SPACE = 6, 2

VESSELS = frozenset("Bowl Box Cup Mug Pan Plate Pot".split())
SLICEABLE = frozenset("Apple Bread Egg Lettuce Potato Tomato".split())
HEATABLE = frozenset("Apple Bread Cup Egg Mug Plate Potato Tomato".split())
COOLABLE = frozenset(f"{_FOOD} {_DISHES} Pan Pot WineBottle".split())
CLEANABLE = frozenset(f"{_DISHES} {_POTS} {_CUTLERY} Apple Egg Lettuce Potato Tomato Cloth DishSponge SoapBar".split())

LAMP = "DeskLamp"
"""The one thing that cannot be picked up, and can be switched."""

ROOMS = {
    "kitchen": {
        "Cabinet": (3, 5),
        "CoffeeMachine": (1, 1),
        "CounterTop": (1, 2),
        "DiningTable": (0, 1),
        "Drawer": (1, 4),
        "Fridge": (1, 1),
        "GarbageCan": (1, 1),
        "Microwave": (1, 1),
        "Shelf": (0, 2),
        "SinkBasin": (1, 1),
        "StoveBurner": (2, 4),
        "Toaster": (0, 1),
    },
    "livingroom": {
        "ArmChair": (1, 2),
        "Cabinet": (0, 3),
        "CoffeeTable": (1, 1),
        "DiningTable": (0, 1),
        "Drawer": (1, 4),
        "Dresser": (0, 1),
        "GarbageCan": (1, 1),
        "Ottoman": (0, 1),
        "Shelf": (0, 3),
        "SideTable": (1, 2),
        "Sofa": (1, 1),
        "TVStand": (1, 1),
    },
    "bedroom": {
        "ArmChair": (0, 1),
        "Bed": (1, 1),
        "Cabinet": (0, 2),
        "Desk": (1, 2),
        "Drawer": (2, 5),
        "Dresser": (0, 1),
        "GarbageCan": (1, 1),
        "LaundryHamper": (0, 1),
        "Safe": (0, 1),
        "Shelf": (0, 3),
        "SideTable": (1, 2),
    },
    "bathroom": {
        "BathtubBasin": (0, 1),
        "Cabinet": (2, 4),
        "Cart": (0, 1),
        "CounterTop": (1, 1),
        "Drawer": (0, 3),
        "GarbageCan": (1, 1),
        "HandTowelHolder": (1, 2),
        "Shelf": (0, 2),
        "SinkBasin": (1, 2),
        "Toilet": (1, 1),
        "ToiletPaperHanger": (1, 1),
        "TowelHolder": (1, 1),
    },
}
"""Room → receptacle → how many there are at least and at most."""

FOUND = {
    room: tuple(sorted(objects.split()))
    for room, objects in {
        "kitchen": f"{_KITCHENWARE} Book CellPhone CreditCard DishSponge Statue Vase",
        "livingroom": f"{_SEATED} Bowl Candle Pen Pencil Plate Statue TissueBox Vase Watch WateringCan",
        "bedroom": f"{_READING} {_POCKET} {_LARGE} AlarmClock BaseballBat BasketBall Bowl Cloth Mug Pillow Statue "
        "TennisRacket",
        "bathroom": f"{_CARE} {_SPRAYS} Candle Towel",
    }.items()
}
"""Room → the kinds of objects that lie there."""

RECEPTACLES = tuple(sorted(HOLDS))
OBJECTS = tuple(sorted({kind for kinds in FOUND.values() for kind in kinds} | {LAMP}))
