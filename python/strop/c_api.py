"""The few entries of the plugin's C interface that Python needs: FFI registration and a look at a client."""

import ctypes

_FFI_EXTENSION = 5
_HEADER = 24  # struct_size, type, next


class _RegisterHandlerArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target_name", ctypes.c_char_p),
        ("target_name_size", ctypes.c_size_t),
        ("api_version", ctypes.c_int),
        ("handler", ctypes.c_void_p),
        ("platform_name", ctypes.c_char_p),
        ("platform_name_size", ctypes.c_size_t),
        ("traits", ctypes.c_int),
    ]


class _TypeRegisterArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("type_name", ctypes.c_char_p),
        ("type_name_size", ctypes.c_size_t),
        ("type_id", ctypes.c_int64),
        ("type_info", ctypes.c_void_p),
    ]


class _ErrorMessageArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("message_size", ctypes.c_size_t),
    ]


def capsule_pointer(capsule) -> int:
    """The pointer in a PyCapsule, whatever its name."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


class Api:
    """A PJRT_Api, by address."""

    def __init__(self, address: int):
        self._address = address
        self._ffi = self._extension(_FFI_EXTENSION)

    @classmethod
    def load(cls, path) -> "Api":
        library = ctypes.CDLL(str(path))
        library.GetPjrtApi.restype = ctypes.c_void_p
        return cls(library.GetPjrtApi())

    def version(self) -> tuple[int, int]:
        at = self._address + 16 + 16
        return ctypes.c_int.from_address(at).value, ctypes.c_int.from_address(at + 4).value

    def register_handler(self, name: str, pointer: int, api_version: int, traits: int = 0) -> None:
        """Makes a custom-call target known to the process. Raises RuntimeError with the plugin's message."""
        text = name.encode()
        args = _RegisterHandlerArgs(
            ctypes.sizeof(_RegisterHandlerArgs), text, len(text), api_version, pointer, b"cpu", 3, traits
        )
        self._call(self._ffi_entry(2), args)

    def register_type(self, name: str, type_id: int) -> int:
        """Gives a type of FFI user data its id; 0 asks for a new one."""
        text = name.encode()
        args = _TypeRegisterArgs(ctypes.sizeof(_TypeRegisterArgs), None, text, len(text), type_id, None)
        self._call(self._ffi_entry(0), args)
        return args.type_id

    def _extension(self, kind: int) -> int:
        at = ctypes.c_void_p.from_address(self._address + 8).value
        while at and ctypes.c_int.from_address(at + 8).value != kind:
            at = ctypes.c_void_p.from_address(at + 16).value
        return at or 0

    def _ffi_entry(self, index: int) -> int:
        if not self._ffi:
            raise RuntimeError("the plugin offers no FFI extension")
        return ctypes.c_void_p.from_address(self._ffi + _HEADER + 8 * index).value

    def _slot(self, index: int) -> int:
        return ctypes.c_void_p.from_address(self._address + 40 + 8 * index).value

    def _call(self, function: int, args: ctypes.Structure) -> None:
        error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(ctypes.addressof(args))
        if not error:
            return
        message = _ErrorMessageArgs(ctypes.sizeof(_ErrorMessageArgs), None, error, None, 0)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._slot(1))(ctypes.addressof(message))
        text = ctypes.string_at(message.message, message.message_size).decode(errors="replace")
        gone = _ErrorMessageArgs(24, None, error, None, 0)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._slot(0))(ctypes.addressof(gone))
        raise RuntimeError(text)
