"""Kernels of the scripted oracle (draft)."""

from __future__ import annotations

import numpy as np
from numba import njit

from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET


@njit(cache=True)
def label_moving(rows, rules, entities, tables, labels, lam1, lam2):
    """Fill labels [B, n, 5] for the games in rows."""
    n, k, items = rules.agents, rules.monsters, rules.items
    side = rules.size - 2
    steps, odds, turned = tables.steps, tables.odds, tables.turned
    armed, seeking, evading = tables.armed, tables.seeking, tables.evading
    cells = side * side
    where = np.zeros(n + k + items, np.int64)
    nexts = np.zeros((k, 5), np.int64)
    chance = np.zeros((k, 5), np.float32)
    near = np.zeros((k, n), np.int64)
    task_target = np.zeros(n, np.int64)
    task_goal = np.zeros(n, np.int64)
    worth = np.zeros((n, k + 1), np.float32)
    via = np.zeros((n, k), np.int64)
    dangers = np.zeros(k, np.int64)
    quality = np.zeros(5, np.float32)
    for b in rows:
        actors = entities[b]
        for e in range(n + k + items):
            where[e] = (actors[e, ROW] - 1) * side + actors[e, COLUMN] - 1
        # where monsters go
        for m in range(k):
            slot = n + m
            if not actors[slot, PRESENT]:
                continue
            best, ties = 1 << 30, 0
            for a in range(n):
                if actors[a, PRESENT]:
                    r, c = where[a] // side - where[slot] // side, where[a] % side - where[slot] % side
                    squared = r * r + c * c
                    if squared < best:
                        best, ties = squared, 1
                    elif squared == best:
                        ties += 1
            for move in range(5):
                nexts[m, move] = steps[where[slot], move]
                chance[m, move] = 0
            for a in range(n):
                near[m, a] = 0
                if actors[a, PRESENT]:
                    r, c = where[a] // side - where[slot] // side, where[a] % side - where[slot] % side
                    if r * r + c * c == best:
                        near[m, a] = 1
                        for move in range(5):
                            chance[m, move] += odds[where[a], where[slot], move] / np.float32(ties)
        # who takes which target
        for a in range(n):
            task_target[a] = -1
            task_goal[a] = -1
            if not actors[a, PRESENT]:
                continue
            held = actors[a, HELD]
            worth[a, k] = _value(a, -1, -1, n, k, cells, where, actors, armed, seeking, evading, tables)
            for m in range(k):
                worth[a, m] = 0
                via[a, m] = -1
                slot = n + m
                if not (actors[slot, PRESENT] and actors[slot, TARGET]):
                    continue
                if held >= 0 and actors[held, ELEMENT] == actors[slot, ELEMENT]:
                    worth[a, m] = _value(a, m, -1, n, k, cells, where, actors, armed, seeking, evading, tables)
                    continue
                if held >= 0 and _needed(actors[held, ELEMENT], n, k, actors):
                    continue
                for i in range(n + k, n + k + items):
                    if actors[i, PRESENT] and actors[i, ELEMENT] == actors[slot, ELEMENT]:
                        v = _value(a, m, where[i], n, k, cells, where, actors, armed, seeking, evading, tables)
                        if v > worth[a, m]:
                            worth[a, m] = v
                            via[a, m] = i
        _assign(n, k, worth, actors, task_target)
        for a in range(n):
            for action in range(5):
                labels[b, a, action] = False
            if not actors[a, PRESENT]:
                labels[b, a, 0] = True
                continue
            m = task_target[a]
            goal = -1
            if m >= 0 and via[a, m] >= 0:
                goal = where[via[a, m]]
            held = actors[a, HELD]
            holds_needed = held >= 0 and _needed(actors[held, ELEMENT], n, k, actors)
            top = np.float32(-1)
            for action in range(5):
                to = steps[where[a], action]
                quality[action] = -1
                if to < 0:
                    continue
                q = _quality(a, to, m, goal, n, k, cells, where, nexts, chance, actors, armed, seeking, evading, tables, near, lam1, lam2)
                if to != where[a] and to != goal:
                    for i in range(n + k, n + k + items):
                        if actors[i, PRESENT] and where[i] == to:
                            if holds_needed:
                                q *= np.float32(0.01)
                            elif _needed(actors[i, ELEMENT], n, k, actors):
                                q *= np.float32(0.9)
                quality[action] = q
                top = max(top, q)
            for action in range(5):
                labels[b, a, action] = quality[action] >= 0 and quality[action] >= top * np.float32(0.9999)


@njit(cache=True)
def _needed(element, n, k, actors):
    for m in range(n, n + k):
        if actors[m, PRESENT] and actors[m, TARGET] and actors[m, ELEMENT] == element:
            return True
    return False


@njit(cache=True)
def _value(a, target, goal, n, k, cells, where, actors, armed, seeking, evading, tables):
    """V of agent a for a task, monsters where they are."""
    at = where[a]
    value = np.float32(1)
    count = 0
    for m in range(k):
        count += actors[n + m, PRESENT]
    if target >= 0:
        t = where[n + target]
        if goal >= 0:
            s, o = tables.symmetry[goal], tables.orbit[goal]
            table, at2, t2 = seeking[o], tables.turned[s, at], tables.turned[s, t]
        else:
            s, table, at2, t2 = 0, armed, at, t
        alone = table[at2, t2, cells]
        value = alone
        if alone <= 0:
            return alone
        for d in range(k):
            if d != target and actors[n + d, PRESENT]:
                value *= table[at2, t2, tables.turned[s, where[n + d]]] / alone
    for d in range(k):
        if d != target and actors[n + d, PRESENT]:
            for f in range(d):
                if f != target and actors[n + f, PRESENT]:
                    value *= evading[at, where[n + f], where[n + d]]
    if target < 0 and count == 1:
        value = np.float32(1)
    return value


LAM1=0.5
LAM2=0.5

@njit(cache=True)
def _quality(a, to, target, goal, n, k, cells, where, nexts, chance, actors, armed, seeking, evading, tables, near, lam1, lam2):
    """V-level."""
    # outcomes of each monster
    s = 0
    table = armed
    if goal >= 0:
        s = tables.symmetry[goal]
        table = seeking[tables.orbit[goal]]
    turned = tables.turned[s]
    at2 = turned[to]
    value = np.float32(1)
    single = np.ones(k, np.float32)
    for d in range(k):
        if not actors[n + d, PRESENT]:
            continue
        if d == target:
            x = np.float32(0)
            if where[n + d] == to:
                x = table[at2, at2, cells]
            else:
                for move in range(5):
                    if chance[d, move] > 0:
                        x += chance[d, move] * table[at2, turned[nexts[d, move]], cells]
        else:
            x = np.float32(1)
            if where[n + d] == to:
                return np.float32(0)
            for move in range(5):
                if nexts[d, move] == to:
                    x -= chance[d, move]
        if x <= 0:
            return np.float32(0)
        single[d] = x
        value *= x
    for d in range(k):
        if not actors[n + d, PRESENT]:
            continue
        for f in range(k):
            if f == d or not actors[n + f, PRESENT] or f == target:
                continue
            if d != target and f < d:
                continue
            pair = np.float32(0)
            if d == target:
                for i in range(5):
                    p = chance[d, i]
                    t_next = nexts[d, i]
                    if where[n + d] == to:
                        if i > 0:
                            break
                        p = np.float32(1)
                        t_next = to
                    if p > 0:
                        row = table[at2, turned[t_next]]
                        for j in range(5):
                            if chance[f, j] > 0:
                                pair += p * chance[f, j] * row[turned[nexts[f, j]]]
            else:
                for i in range(5):
                    p = chance[d, i]
                    if p > 0:
                        row = evading[to, nexts[d, i]]
                        for j in range(5):
                            if chance[f, j] > 0:
                                pair += p * chance[f, j] * row[nexts[f, j]]
            x = pair / (single[d] * single[f])
            mine = near[d, a] + near[f, a]
            if mine == 2:
                value *= x
            elif mine == 1:
                value *= x ** lam1
            else:
                value *= x ** lam2
    return value


@njit(cache=True)
def _assign(n, k, worth, actors, task_target):
    """Greedy in worth (draft)."""
    for _ in range(n):
        best, who, which = np.float32(0), -1, -1
        for a in range(n):
            if actors[a, PRESENT] and task_target[a] < 0:
                for m in range(k):
                    taken = False
                    for o in range(n):
                        taken |= task_target[o] == m
                    if not taken and worth[a, m] > best:
                        best, who, which = worth[a, m], a, m
        if who < 0:
            return
        task_target[who] = which
