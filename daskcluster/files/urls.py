"""What is stored under URLs: opened with the user's options, and failures to reach it said in one line.

Options of a file system (an endpoint, credentials, a project) come from dask's setting ``daskcluster.storage-options``;
what is opened keeps them, and takes them along to other processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from zarr.abc.store import Store
from zarr.storage import FsspecStore, ObjectStore

__all__ = [
    "OPTIONS",
    "is_url",
    "open_store",
    "protocol_of",
    "reaching",
    "store_options",
    "unreachable",
    "unreachable_in",
    "url_of",
]

#: The setting.
OPTIONS = "daskcluster.storage-options"

#: One request a chunk: else s3fs asks for the size first, and where there is nothing for a listing, which not all may.
_DEFAULTS = {"s3": {"max_concurrency": 1}}

#: Names of errors of access, beside `PermissionError`: of botocore, obstore and google-auth, which may be absent.
_DENIED = {
    "ClientAuthenticationError",
    "CredentialRetrievalError",
    "DefaultCredentialsError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "PermissionDeniedError",
    "ProfileNotFound",
    "TokenRetrievalError",
    "UnauthenticatedError",
}
#: What services say of it inside errors of another type.
_SAID = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "Forbidden", "Unauthorized")
#: First parts of the modules whose errors are of the connection.
_CLIENTS = ("botocore", "aiobotocore", "aiohttp", "obstore", "gcsfs", "adlfs", "urllib3")


#: Other names of protocols.
_SAME = {"s3a": "s3", "gcs": "gs", "az": "abfs", "abfss": "abfs"}


def is_url(name: str) -> bool:
    """Whether a path is a URL, or a chain of them as fsspec takes it."""
    return "://" in name or ("::" in name and _is_protocol(name.partition("::")[0]))


def protocol_of(url: str) -> str:
    """The protocol of a URL, by the first of its names."""
    protocol = url.partition("://")[0]
    return _SAME.get(protocol, protocol)


def store_options(url: str) -> dict[str, Any]:
    """The user's options for the file system of a URL.

    The setting is a mapping of them. One that belongs to a protocol only stands under its name:
    ``{"s3": {"anon": True}, "gs": {"project": "p"}}``.
    """
    import dask  # its settings

    options = dask.config.get(OPTIONS, None) or {}
    if not isinstance(options, Mapping):
        raise TypeError(f"{OPTIONS}: expected a mapping of options, such as {{'anon': True}}, got {options!r:.100}")
    protocol = protocol_of(url)
    by_protocol = bool(options) and all(isinstance(own, Mapping) and _is_protocol(key) for key, own in options.items())
    if "::" in url:
        return dict(options)
    if by_protocol:
        options = {
            name: value for key, own in options.items() if protocol_of(key) == protocol for name, value in own.items()
        }
    return _DEFAULTS.get(protocol, {}) | dict(options)


def _is_protocol(name: str) -> bool:
    from fsspec import available_protocols

    return name in available_protocols()


def open_store(url: str) -> FsspecStore:
    """The store of zarr's under a URL, for reading and writing."""
    with reaching(url):
        try:
            return FsspecStore.from_url(url, storage_options=store_options(url) or None)
        except ValueError as error:  # a protocol that nobody knows
            raise ValueError(f"{url!r}: {error}") from error


#: Classes of obstore -> the protocol under which fsspec knows the same service.
_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}


def url_of(store: Store) -> str | None:
    """The URL of what a store of zarr's holds; None for one that has none."""
    if isinstance(store, FsspecStore):
        return str(store.fs.unstrip_protocol(store.path)).rstrip("/")
    inner = store.store if isinstance(store, ObjectStore) else None
    scheme = _SCHEMES.get(type(inner).__name__)
    if scheme is None:
        return None
    config = getattr(inner, "config", {})
    bucket = config.get("bucket") or config.get("container_name")
    prefix = getattr(inner, "prefix", None)
    return f"{scheme}://{bucket}" + (f"/{str(prefix).strip('/')}" if prefix else "") if bucket else None


# -- failures ---------------------------------------------------------------------------------------------------------


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Turn what a file system raises into an error that names the URL; see `unreachable`."""
    try:
        yield
    except Exception as error:
        said = unreachable(url, error)
        if said is None:
            raise
        raise said from error


def unreachable(url: str, error: BaseException) -> Exception | None:
    """The error, of Python's own, that says why a URL was not reached; None when `error` says something else.

    Those of the clients' libraries do not always travel between processes, and most say neither what they were about
    nor what to do.
    """
    why = " ".join(str(error).split())[:300] or type(error).__name__
    scheme = url.partition("://")[0]
    if isinstance(error, ImportError):
        return ImportError(f"{url!r}: URLs of {scheme}:// need a package that is not installed: {why}")
    if isinstance(error, NotImplementedError):
        return PermissionError(f"{url!r}: {scheme}:// is for reading only; give another place")
    if isinstance(error, PermissionError) or _names_of(error) & _DENIED or any(word in str(error) for word in _SAID):
        return PermissionError(
            f"{url!r}: access is denied ({why}); check the credentials that this process finds, or give some: "
            f"dask.config.set({{'{OPTIONS}': {{...}}}}), on the command line --storage-options JSON"
        )
    remote = any(cls.__module__.partition(".")[0] in _CLIENTS for cls in type(error).__mro__)
    if isinstance(error, FileNotFoundError | FileExistsError):
        return None
    if remote or isinstance(error, ConnectionError | TimeoutError) or type(error) is OSError:
        return ConnectionError(f"{url!r} cannot be reached: {type(error).__name__}: {why}")
    return None


def unreachable_in(url: str, error: BaseException) -> Exception | None:
    """The same of an error, or of what led to it: what libraries say of damage may be a lack of access."""
    found: BaseException | None = error
    while found is not None:
        said = unreachable(url, found)
        if said is not None:
            return said
        found = found.__cause__ or found.__context__
    return None


def _names_of(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}
