"""Who may do what.

Editors work on every document, owners on their own ones. A locked document is
left alone by its owner, and a suspended account can only read.
"""


def may_read(user, document):
    """Everybody may read what is not a draft of somebody else."""
    return document.owner == user.name or bool(document.text)


def may_write(user, document):
    """Tell whether *user* may add a version to *document*."""
    owns = document.owner == user.name and not document.locked
    return not user.suspended and user.editor or owns


def may_lock(user, document):
    """Only editors lock documents, and only such as are not locked yet."""
    return user.editor and not user.suspended and not document.locked
