/** Facts of a package that are not in its files. */
export interface ControlInput {
  /** With the Debian revision. */
  version: string;
  architecture: string;
  /** `NAME <ADDRESS>`. */
  maintainer: string;
  /** Of the installed files, in KiB. */
  installedKib: number;
}

/** The drivers' programs; README.md has the same table. The package manager of the user installs the first list unless told otherwise. */
const QEMU_DRIVER = [
  'qemu-system-x86 | qemu-system-arm',
  'qemu-utils',
  'openssh-client',
  'openssh-sftp-server',
  'bubblewrap',
];
const HOST_DRIVER = ['docker.io', 'containerd', 'iptables', 'iproute2'];
/** For `rdctl image build`. */
const IMAGE_BUILD = ['mmdebstrap', 'e2fsprogs'];

export function control({ version, architecture, maintainer, installedKib }: ControlInput): string {
  return `Package: rdctl
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${installedKib}
Depends: libc6 (>= 2.17)
Recommends: ${QEMU_DRIVER.join(', ')}
Suggests: ${[...HOST_DRIVER, ...IMAGE_BUILD].join(', ')}
Section: admin
Priority: optional
Description: declarative control of a container desktop
 rdctl turns a profile, a file that says what a container desktop should be
 (machine, engine, Kubernetes, policies), into a running one. It shows what a
 change would do, what it costs and what it interrupts, carries it out, and
 waits until it is done.
 .
 The engine runs in a virtual machine (qemu) for any user, or on this computer
 (dockerd, containerd) for root. Interfaces and deployment profiles of Rancher
 Desktop are understood and written.
`;
}

const AFTER = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
`;

/** Prints the pids of services that run this program or the one before it; not those of containers, which have roots of their own. */
const SERVICES = `services() {
    for exe in /proc/[0-9]*/exe; do
        case "$(readlink "$exe" 2>/dev/null)" in
        /usr/bin/rdctl | '/usr/bin/rdctl (deleted)') ;;
        *) continue ;;
        esac
        directory=\${exe%/exe}
        [ "$directory/root/" -ef / ] || continue
        if tr '\\0' '\\n' <"$directory/cmdline" 2>/dev/null | grep -qx serve; then
            echo "\${directory#/proc/}"
        fi
    done
}
`;

/**
 * An upgrade replaces the program and ends nothing: a service goes on as the program that it was started with, because its end would be that of
 * its engine and containers. Removal ends services, because without the program nobody could; data in homes is never touched.
 */
export const MAINTAINER_SCRIPTS: Readonly<Record<string, string>> = {
  postinst: `${AFTER}
${SERVICES}
if [ "$1" = configure ] && [ -n "$2" ]; then
    for pid in $(services); do
        echo "rdctl: process $pid and its engine keep running version $2; rdctl shutdown, then rdctl start, changes that." >&2
    done
fi
`,
  prerm: `#!/bin/sh
set -e
[ "$1" = remove ] || exit 0

${SERVICES}
if [ -d /run/systemd/system ]; then
    systemctl --system disable --now rdctl.service >/dev/null 2>&1 || true
fi
# Enabled for all users by an administrator.
rm -f /etc/systemd/user/default.target.wants/rdctl.service
# Units of rdctl service install --system that run this program.
for unit in /etc/systemd/system/rdctl*.service; do
    grep -qs X-Rdctl-Managed "$unit" || continue
    grep -qs '^ExecStart="/usr/bin/rdctl" ' "$unit" || continue
    name=$(basename "$unit" .service)
    for each in "$name.socket" "$name.service"; do
        [ -e "/etc/systemd/system/$each" ] || continue
        if [ -d /run/systemd/system ]; then
            systemctl --system disable --now "$each" >/dev/null 2>&1 || true
        fi
        rm -f "/etc/systemd/system/$each"
    done
done
# Containers get their time to end, those of all services the same. Each look is a new one: the number of a process that has ended may be that of
# another program by now.
left=300
told=' '
while pids=$(services) && [ -n "$pids" ] && [ "$left" -gt 0 ]; do
    for pid in $pids; do
        case $told in *" $pid "*) continue ;; esac
        told="$told$pid "
        echo "rdctl: ending process $pid and its engine" >&2
        # One that is suspended ends once it continues.
        kill -TERM "$pid" 2>/dev/null && kill -CONT "$pid" 2>/dev/null || true
    done
    sleep 1
    left=$((left - 1))
done
for pid in $pids; do
    echo "rdctl: process $pid did not end" >&2
done
`,
  postrm: AFTER,
};
