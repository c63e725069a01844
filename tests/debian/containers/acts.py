# What one container does to another, and to the host: act NAME ARGUMENT..., or `serve`, which is what it is done to. Each act prints
# NAME: done, or why not.
import ctypes, errno, os, signal, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
KEY, SIZE, CREATE, NOWAIT = 0x7011, 4096, 0o1000, 0o4000


def call(function, *arguments):
    result = getattr(libc, function)(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def serve():
    # A container that is started again finds what it has left.
    for path in ("/ready", "/sock", "/datagrams"):
        if os.path.exists(path):
            os.unlink(path)
    with open("/secret", "w") as secret:
        secret.write("secret\n")
    listeners = []
    for address, kind in (("/sock", socket.SOCK_STREAM), ("\0" + sys.argv[2], socket.SOCK_STREAM), ("/datagrams", socket.SOCK_DGRAM)):
        listener = socket.socket(socket.AF_UNIX, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        listeners.append(listener)
    key = int(sys.argv[3])
    call("shmget", key, SIZE, CREATE | 0o666)
    call("semget", key, 1, CREATE | 0o666)
    call("msgget", key, CREATE | 0o666)
    open("/ready", "w").close()
    while True:
        signal.pause()


def read(path):
    with open(path) as file:
        file.read(1)


def write(path):
    with open(path, "w") as file:
        file.write("written\n")


def kill(process):
    os.kill(int(process), signal.SIGCONT)


def ptrace(process):
    call("ptrace", 16, int(process), None, None)
    os.waitpid(int(process), 0)
    call("ptrace", 17, int(process), None, None)


def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)


def abstract(name):
    connect("\0" + name)


def send(path):
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"word", path)


def shm(key):
    call("shmat", call("shmget", int(key), SIZE, 0), None, 0)


def sem(key):
    call("semctl", call("semget", int(key), 1, 0), 0, 12)


def msg(key):
    call("msgsnd", call("msgget", int(key), 0), ctypes.create_string_buffer(b"\1\0\0\0\0\0\0\0word"), 4, NOWAIT)


def mount(path):
    call("mount", b"none", path.encode(), b"tmpfs", 0, None)


def move(path):
    with open(path, "w") as file:
        file.write("0")


def run(path):
    if os.spawnv(os.P_WAIT, path, [path, "--version"]):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


if sys.argv[1] == "serve":
    serve()
for word in sys.argv[1:]:
    name, _, argument = word.partition("=")
    try:
        globals()[name.partition("-")[0]](argument)
        print(f"{name}: done", flush=True)
    except OSError as error:
        print(f"{name}: {error.strerror}", flush=True)
