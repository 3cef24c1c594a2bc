"""Furniture of each kind of room, and the kinds of objects that lie there; names are ALFRED's."""

from __future__ import annotations

ROOMY = frozenset("Bed Cart CoffeeTable CounterTop Desk DiningTable Dresser Fridge Shelf SideTable Sofa".split())
"""Receptacles in which up to ROOMY_SPACE objects lie at first; in the others up to NARROW_SPACE."""
ROOMY_SPACE, NARROW_SPACE = 6, 2

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
        "kitchen": "Apple Bread Egg Lettuce Potato Tomato Bowl Cup Mug Plate Kettle Pan Pot ButterKnife Fork Knife "
        "Ladle Spatula Spoon Glassbottle WineBottle PepperShaker SaltShaker SoapBottle SprayBottle Book CellPhone "
        "CreditCard DishSponge Statue Vase",
        "livingroom": "Book Newspaper Box Laptop CellPhone CreditCard KeyChain Pillow RemoteControl Bowl Candle Pen "
        "Pencil Plate Statue TissueBox Vase Watch WateringCan",
        "bedroom": "Book Newspaper CD CellPhone CreditCard KeyChain Pen Pencil RemoteControl Watch Box Laptop "
        "AlarmClock BaseballBat BasketBall Bowl Cloth Mug Pillow Statue TennisRacket",
        "bathroom": "Cloth DishSponge HandTowel SoapBar TissueBox ToiletPaper SoapBottle SprayBottle Candle Towel",
    }.items()
}
"""Room → the kinds of objects that lie there."""
