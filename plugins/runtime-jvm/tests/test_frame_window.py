"""The window of the frames that a JVM has not executed."""

from __future__ import annotations

from heron_runtime_jvm.frame_window import FrameWindow

MIB = 1024 * 1024


def test_large_rows_fill_the_window_before_the_number_of_rows_does() -> None:
    """The memory of the JVM has to hold them."""
    window = FrameWindow()
    for number in range(1, 17):
        assert not window.is_full
        window.sent(number, MIB, 1)
    full = [window.is_full]
    window.done(1)
    full.append(window.is_full)
    window.done(16)
    window.sent(17, 16 * MIB, 1)
    assert [*full, window.is_full] == [True, False, True]


def test_frames_of_large_rows_are_short() -> None:
    """And long again when rows are small."""
    window = FrameWindow()
    assert window.frame_rows == 512
    window.sent(512, 512 * 100_000, 512)
    assert window.frame_rows == 2
    window.sent(513, 5 * MIB, 1)
    assert window.frame_rows == 1
    window.sent(514, 30, 1)
    assert window.frame_rows == 512
