"""Downloads source distributions from a package index and unpacks them. It runs no code of theirs.

usage: sdists.py LIST DIR

LIST has one name==version per line. The distribution goes to DIR/name. A package that is there
already is not downloaded again. The index is PyPI, or the one that PIP_INDEX_URL names. The exit
code is 1 if a package could not be downloaded.
"""

import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import urllib.parse
import urllib.request

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


def get(url, accept="*/*"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


def find(name, version):
    """Returns the address and the SHA-256 hash of a source distribution."""
    page = f"{INDEX}/{name}/"
    files = json.loads(get(page, "application/vnd.pypi.simple.v1+json"))["files"]
    stem = re.sub("[-_.]+", "[-_.]+", name)
    for file in files:
        if re.fullmatch(rf"{stem}-{re.escape(version)}\.tar\.gz", file["filename"], re.IGNORECASE):
            return urllib.parse.urljoin(page, file["url"]), file["hashes"]["sha256"]
    raise LookupError(f"the index has no {name}-{version}.tar.gz")


def unpack(name, version, parent):
    url, expected = find(name, version)
    data = get(url)
    if hashlib.sha256(data).hexdigest() != expected:
        raise ValueError(f"{url} does not have the hash that the index states")
    temporary = os.path.join(parent, "." + name)
    shutil.rmtree(temporary, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = os.path.normpath(os.path.join(temporary, member.name))
            if not path.startswith(temporary + os.sep):
                raise ValueError(f"{url} has a file outside its directory: {member.name}")
            if member.isfile():
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as out:
                    shutil.copyfileobj(archive.extractfile(member), out)
    (top,) = os.listdir(temporary)
    os.rename(os.path.join(temporary, top), os.path.join(parent, name))
    os.rmdir(temporary)


def main():
    parent, failed = sys.argv[2], False
    os.makedirs(parent, exist_ok=True)
    for line in open(sys.argv[1], encoding="utf-8"):
        name, _, version = line.split("#")[0].strip().partition("==")
        if not name or os.path.exists(os.path.join(parent, name)):
            continue
        try:
            unpack(name, version, parent)
        except (OSError, LookupError, ValueError, tarfile.TarError) as error:
            print(f"{name}=={version}: {error}", file=sys.stderr)
            failed = True
    sys.exit(failed)


main()
