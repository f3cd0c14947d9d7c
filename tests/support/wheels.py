"""Write small wheels into a folder, to build environments without a network."""

import base64
import hashlib
import zipfile


def use_alone(monkeypatch, folder, uv_cache):
    """Let uv install from the wheels in a folder alone. No variable of uv has the meaning of --no-index."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", folder.as_uri())  # it has no packages
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))


def wheel(folder, name, version, source="", requires=()):
    """Write ``<name>-<version>-py3-none-any.whl`` with one module that contains ``source``."""
    info = f"{name}-{version}.dist-info"
    requirements = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    texts = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={digest(text)},{len(text.encode())}\n" for path, text in texts.items())
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**texts, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), text)


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
