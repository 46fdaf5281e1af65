"""What a door is: one question about attention layers, the model behind it, and where its literature is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Door:
    """A question of the atlas. ``attlas/claims/<key>/__init__.py`` holds one, called ``DOOR``.

    Attributes
    ----------
    key : str
        Name of its folders and pages, and the first part of the ids of its claims.
    order : int
        Its place among the doors, everywhere that they are listed.
    title : str
        The same on the site, in the explorer, in the documentation and in the commands.
    question : str
    about : str
        One paragraph: what is known, what is sought.
    formula : str
        The model, in TeX, letters as in ``docs/notation.md``.
    papers : tuple of str
        Keys of ``references.bib``.
    parent : str, optional
        Key of the door whose model this one shares; it is shown as a part of that one.
    headline : str, optional
        Id of the claim whose finding speaks for the door.
    """

    key: str
    order: int
    title: str
    question: str
    about: str = ""
    formula: str = ""
    papers: tuple[str, ...] = ()
    parent: str | None = None
    headline: str | None = None
