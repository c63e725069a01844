/* Sockets. */
#include "../../acts/acts.h"
#include "../fuzz.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

CALL(socket)
{
	return keep_descriptor(
		socket(PICK(AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK),
		       PICK(SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET) | SOCK_NONBLOCK,
		       PICK(0, 0, 0, IPPROTO_TCP, IPPROTO_SCTP, 262)));
}

static const struct sockaddr_in kept = {.sin_family = AF_INET,
					.sin_port = __builtin_bswap16(PORT),
					.sin_addr = {.s_addr = 0x0100007f}};

CALL(socket_bind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, one_of(2) ? "new" : VAULT "/new");
	return one_of(2) ? bind(descriptor(), (void *)&address, sizeof address)
			 : bind(descriptor(), (const void *)&kept, sizeof kept);
}

CALL(connect)
{
	return connect(descriptor(), (const void *)&kept, sizeof kept);
}

CALL(listen)
{
	return listen(descriptor(), 2);
}

CALL(sendto)
{
	return sendto(descriptor(), buffer, 7, MSG_NOSIGNAL | MSG_DONTWAIT | MIX(MSG_FASTOPEN),
		      (const void *)&kept, sizeof kept);
}

CALL(send)
{
	return send(descriptor(), buffer, 7, MSG_NOSIGNAL | MSG_DONTWAIT);
}

CALL(receive)
{
	return recv(descriptor(), buffer + 2048, 64, MSG_DONTWAIT);
}

CALL(pass)
{
	return send_descriptor(descriptor(), descriptor());
}

CALL(passed)
{
	return keep_descriptor(receive_descriptor(descriptor()));
}

CALL(sockopt)
{
	int one = 1;
	socklen_t length = sizeof one;

	return one_of(2) ? setsockopt(descriptor(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one)
			 : getsockopt(descriptor(), SOL_SOCKET, SO_TYPE, &one, &length);
}

CALL(name_of_socket)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	return one_of(2) ? getsockname(descriptor(), (void *)&address, &length)
			 : getpeername(descriptor(), (void *)&address, &length);
}

CALL(shutdown)
{
	return shutdown(descriptor(), PICK(SHUT_RD, SHUT_WR));
}
