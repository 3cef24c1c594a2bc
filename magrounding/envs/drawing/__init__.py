"""Pictures of grid worlds, drawn by us: vector shapes, figures, whole scenes."""
