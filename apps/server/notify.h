/* SPDX-License-Identifier: Apache-2.0
 * Tells a service manager how the server is. */
#ifndef PITH_APPS_SERVER_NOTIFY_H
#define PITH_APPS_SERVER_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=..." as one datagram to $NOTIFY_SOCKET (systemd's protocol; man
 * sd_notify). Nothing without that variable; a manager that does not listen is no error. */
void pith_notify(const char *state);

#endif
