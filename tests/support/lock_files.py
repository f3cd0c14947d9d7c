from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "environments/lockfiles/samples"
# what every pylock.toml has
PEP_751 = 'lock-version = "1.0"\ncreated-by = "a test"\n'


def pep_751_package(name, version, marker):
    file = f'{{ url = "https://example.org/{name}-{version}.tar.gz", hashes = {{ sha256 = "00" }} }}'
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\nmarker = "{marker}"\nsdist = {file}\n'


def read_sample(path):
    return (SAMPLES / path).read_text()
