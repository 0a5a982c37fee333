/* SPDX-License-Identifier: Apache-2.0
 * One datagram to a service manager. The address is a path, or "@name" of Linux' abstract space. */
#define _GNU_SOURCE

#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void pith_notify(const char *state) {
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = name ? strlen(name) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return;
    memcpy(address.sun_path, name, size);
    if (name[0] == '@') address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return;
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    (void)sendto(fd, state, strlen(state), MSG_DONTWAIT, (const struct sockaddr *)&address, length);
    close(fd);
}
