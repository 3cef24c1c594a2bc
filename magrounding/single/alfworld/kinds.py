"""Receptacles and objects of our scenes, and what can be done with them; names are ALFRED's."""

from __future__ import annotations

_FOOD = "Apple Bread Egg Lettuce Potato Tomato"
_DISHES = "Bowl Cup Mug Plate"
_POTS = "Kettle Pan Pot"
_CUTLERY = "ButterKnife Fork Knife Ladle Spatula Spoon"
_DRINKS = "Glassbottle WineBottle"
_SHAKERS = "PepperShaker SaltShaker"
SPRAYS = "SoapBottle SprayBottle"
READING = "Book Newspaper"
POCKET = "CD CellPhone CreditCard KeyChain Pen Pencil RemoteControl Watch"
CARE = "Cloth DishSponge HandTowel SoapBar TissueBox ToiletPaper"
_SHOWN = "AlarmClock Candle Statue Vase WateringCan"
LARGE = "Box Laptop"
ON_SOFAS = f"{READING} {LARGE} CellPhone CreditCard KeyChain Pillow RemoteControl"
_DISPLAYED = f"{READING} {POCKET} {_SHOWN} {_DISHES} Box TissueBox {_DRINKS}"
KITCHENWARE = f"{_FOOD} {_DISHES} {_POTS} {_CUTLERY} {_DRINKS} {_SHAKERS} {SPRAYS}"
_ANYTHING = f"{KITCHENWARE} {READING} {POCKET} {CARE} {_SHOWN} {LARGE}"

HOLDS = {
    receptacle: frozenset(objects.split())
    for receptacle, objects in {
        "ArmChair": ON_SOFAS,
        "BathtubBasin": "Cloth DishSponge HandTowel SoapBar",
        "Bed": f"{READING} BaseballBat BasketBall CellPhone Laptop Pillow TennisRacket",
        "Cabinet": f"{_DISHES} {_POTS} {_DRINKS} {_SHAKERS} {SPRAYS} {READING} {CARE} Candle Ladle Vase",
        "Cart": f"{CARE} {SPRAYS} Candle Statue Vase",
        "CoffeeMachine": "Mug",
        "CoffeeTable": f"{_ANYTHING} DeskLamp",
        "CounterTop": _ANYTHING,
        "Desk": f"{_DISPLAYED} Laptop BasketBall TennisRacket DeskLamp",
        "DiningTable": _ANYTHING,
        "Drawer": f"{_CUTLERY} {POCKET} {READING} {_SHAKERS} {CARE} Candle",
        "Dresser": f"{_DISPLAYED} Laptop BasketBall TennisRacket DeskLamp",
        "Fridge": f"{_FOOD} {_DISHES} {_DRINKS} Pan Pot",
        "GarbageCan": f"{_FOOD} {SPRAYS} Newspaper Pen Pencil CD Cloth DishSponge SoapBar TissueBox ToiletPaper",
        "HandTowelHolder": "HandTowel",
        "LaundryHamper": "Cloth",
        "Microwave": f"{_DISHES} Apple Bread Egg Potato Tomato",
        "Ottoman": ON_SOFAS,
        "Safe": "CD CellPhone CreditCard KeyChain Statue Vase Watch",
        "Shelf": f"{_DISPLAYED} {CARE} {SPRAYS} {_SHAKERS} Kettle Pot",
        "SideTable": f"{_ANYTHING} DeskLamp",
        "SinkBasin": f"{_DISHES} {_POTS} {_CUTLERY} Apple Egg Lettuce Potato Tomato Cloth DishSponge SoapBar",
        "Sofa": ON_SOFAS,
        "StoveBurner": _POTS,
        "Toaster": "",
        "Toilet": f"{CARE} {SPRAYS} Candle Newspaper",
        "ToiletPaperHanger": "ToiletPaper",
        "TowelHolder": "Towel",
        "TVStand": "RemoteControl TissueBox Statue Newspaper",
    }.items()
}
"""Receptacle → the kinds of objects that it can contain."""

OPENABLE = frozenset("Cabinet Drawer Fridge Microwave Safe".split())
VESSELS = frozenset("Bowl Box Cup Mug Pan Plate Pot".split())
SLICEABLE = frozenset("Apple Bread Egg Lettuce Potato Tomato".split())
HEATABLE = frozenset("Apple Bread Cup Egg Mug Plate Potato Tomato".split())
COOLABLE = frozenset(f"{_FOOD} {_DISHES} Pan Pot WineBottle".split())
CLEANABLE = frozenset(f"{_DISHES} {_POTS} {_CUTLERY} Apple Egg Lettuce Potato Tomato Cloth DishSponge SoapBar".split())

LAMP = "DeskLamp"
"""The one thing that cannot be picked up, and can be switched."""

RECEPTACLES = tuple(sorted(HOLDS))
OBJECTS = tuple(sorted(set[str]().union(*HOLDS.values())))
