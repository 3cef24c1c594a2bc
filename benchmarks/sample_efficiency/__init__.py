"""Sample efficiency of BabyAI's levels, as its paper asks it: how many demonstrations, or episodes, 99 % takes."""
