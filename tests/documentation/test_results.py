"""Numbers of files on pages (`tools.results`)."""

from tools.results import find


def test_a_word_names_a_player_and_not_its_teacher():
    assert find("ma_rtfm-2-quick s1 eval oracle")["player"] == "oracle"
