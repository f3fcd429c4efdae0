import { createHash } from 'node:crypto';
import { ARCHITECTURES, type Architecture } from './architecture.ts';
import { emulationFiles, emulationScript, emulatorOptions } from './emulation.ts';
import { NAME_FILES, NAMES_UNIT } from './host-names.ts';

/**
 * The recipe that builds a guest image from Debian packages. These scripts run in the new root or in the guest. Changes here only affect images built
 * afterwards, never existing machines.
 */

/** Size of the root disk. Data that grows is on the machine's data disk. */
export const ROOT_BYTES = 3 * 1024 ** 3;

/** Packages in every guest. `apparmor` is not among them, so it is disabled on the kernel command line. */
const PACKAGES: readonly string[] = [
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'kmod',
  'initramfs-tools',
  'openssh-server',
  'docker.io',
  'containerd',
  'iptables',
  'iproute2',
  'ca-certificates',
  'dnsmasq-base',
  'e2fsprogs',
  'procps',
  'sshfs',
];

// Separate packages since Debian 13.
const CLIENTS = ['docker-cli', 'docker-buildx', 'docker-compose'];

/** Debian suites that a guest can be built from, oldest first. */
export const SUITE_NAMES = ['bookworm', 'trixie', 'sid'] as const;
export type Suite = (typeof SUITE_NAMES)[number];
export const DEFAULT_SUITE: Suite = 'trixie';

/** The image name of each suite, and the packages it needs in addition to those of every guest. */
export const SUITES: Readonly<Record<Suite, { name: string; packages: readonly string[] }>> = {
  bookworm: { name: 'debian-12', packages: ['qemu-user-static'] },
  trixie: { name: 'debian-13', packages: [...CLIENTS, 'qemu-user'] },
  sid: { name: 'debian-sid', packages: [...CLIENTS, 'qemu-user'] },
};

/**
 * The available kernels: `package` is the name of Debian's before the architecture. `features` are recorded in the image, for machines that
 * need them; `suffix` is appended to the image name.
 */
export const KERNELS = {
  cloud: { suffix: '', package: 'linux-image-cloud', features: [] },
  generic: { suffix: '-generic', package: 'linux-image', features: ['9p'] },
} as const satisfies Record<string, { suffix: string; package: string; features: readonly string[] }>;
export type Kernel = keyof typeof KERNELS;

/** Returns the packages of a guest. Their dependencies are installed too, but not their recommendations. */
export function packagesOf(architecture: Architecture, suite: Suite, kernel: Kernel): readonly string[] {
  return [...PACKAGES, ...SUITES[suite].packages, `${KERNELS[kernel].package}-${ARCHITECTURES[architecture].debian}`];
}

/** Returns the dpkg options that leave out documentation and translations, which a guest does not need. */
export function pathOptions(architecture: Architecture): readonly string[] {
  return [
    'path-exclude=/usr/share/doc/*',
    'path-exclude=/usr/share/man/*',
    'path-exclude=/usr/share/locale/*',
    ...emulatorOptions(architecture),
  ];
}

/** Directory in which the guest finds the configuration that the host passes at every boot. */
export const FIRMWARE_FOLDER = 'opt/rdctl';
/** Serial number of the data disk, by which the guest identifies it. */
export const DATA_SERIAL = 'rdctl-data';
/** Outside of any home directory, because a shared host directory may be mounted over the guest's. */
const AUTHORIZED_KEYS = '/etc/ssh/authorized_keys';
/** Root's home directory, moved because a shared host directory may be mounted over the guest's. */
const ROOT_HOME = '/var/root';
/** Mount point of the data disk in the guest. */
const DATA_MOUNT = '/var/lib/rdctl';

/** Mounts (`mount`) and releases (`unmount`) the data disk, at boot and on request of the host. */
export const DATA_SCRIPT = '/usr/lib/rdctl/data';

/**
 * Finds the data disk by its serial number instead of waiting for udev, which is slow. Formats an empty disk; never touches a disk with any
 * other content. Unmounting drops all cached data, so that a different disk may be attached before the next mount.
 */
const DATA_TEXT = `#!/bin/sh
set -eu
find_disk() {
  for each in /sys/block/*; do
    if [ "$(cat "$each/serial" 2>/dev/null || true)" = '${DATA_SERIAL}' ]; then
      data=/dev/\${each##*/}
      return 0
    fi
  done
  return 1
}
tries=0
until find_disk && [ -b "$data" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { echo 'there is no data disk' >&2; exit 1; }
  sleep 0.1
done
case \${1:-} in
mount)
  if mountpoint -q ${DATA_MOUNT}; then exit 0; fi
  if [ "$(blkid -p -o value -s TYPE "$data" || true)" = '' ] && [ "$(head -c 1048576 "$data" | tr -d '\\0' | wc -c)" -eq 0 ]; then
    mke2fs -q -t ext4 -L ${DATA_SERIAL} -m 1 -E nodiscard "$data"
  fi
  e2fsck -p "$data" || [ "$?" -le 2 ]
  mkdir -p ${DATA_MOUNT}
  mount -o noatime,discard "$data" ${DATA_MOUNT}
  ;;
unmount)
  if mountpoint -q ${DATA_MOUNT}; then umount --recursive ${DATA_MOUNT}; fi
  sync
  udevadm settle
  blockdev --flushbufs "$data"
  ;;
*)
  echo 'usage: data mount|unmount' >&2
  exit 2
  ;;
esac
`;

/** Runs in the guest before any other service: reads keys and host name from the firmware configuration, and mounts the data disk. */
const BOOT_SCRIPT = `#!/bin/sh
set -eu
umask 077
modprobe qemu_fw_cfg
given=/sys/firmware/qemu_fw_cfg/by_name/${FIRMWARE_FOLDER}
cp "$given/authorized_key/raw" ${AUTHORIZED_KEYS}
cp "$given/host_key/raw" /etc/ssh/ssh_host_ed25519_key
hostname "$(cat "$given/hostname/raw")"
exec ${DATA_SCRIPT} mount
`;

const BOOT_UNIT = `[Unit]
Description=Keys, host name and data disk from the host
DefaultDependencies=no
After=systemd-remount-fs.service systemd-tmpfiles-setup-dev.service
Before=ssh.service basic.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/rdctl/boot
# The host reads the console log to report why a boot failed.
StandardOutput=journal+console
StandardError=journal+console

[Install]
RequiredBy=ssh.service
`;

export interface RootFile {
  path: string;
  mode: number;
  text: string;
}

/** Returns the files to add to the root file system. */
export function rootFiles(architecture: Architecture): readonly RootFile[] {
  return [
    { path: '/usr/lib/rdctl/boot', mode: 0o755, text: BOOT_SCRIPT },
    { path: DATA_SCRIPT, mode: 0o755, text: DATA_TEXT },
    { path: '/etc/systemd/system/rdctl-boot.service', mode: 0o644, text: BOOT_UNIT },
    {
      path: '/etc/systemd/network/10-host.network',
      mode: 0o644,
      // The engines' bridges are Ethernet too, but unlike the network card they have a kind.
      text: '[Match]\nType=ether\nKind=!*\n\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n',
    },
    ...NAME_FILES,
    ...emulationFiles(architecture),
    { path: '/etc/fstab', mode: 0o644, text: '/dev/vda / ext4 defaults,noatime 0 1\n' },
    { path: '/etc/hostname', mode: 0o644, text: 'rdctl\n' },
    { path: '/etc/hosts', mode: 0o644, text: '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' },
    { path: '/etc/machine-id', mode: 0o444, text: '' },
    // Replaces systemd's own unit, which would create a directory in root's home, possibly the shared one of the host.
    { path: '/etc/tmpfiles.d/provision.conf', mode: 0o644, text: '' },
    {
      path: '/etc/ssh/sshd_config.d/rdctl.conf',
      mode: 0o644,
      text: [
        'HostKey /etc/ssh/ssh_host_ed25519_key',
        `AuthorizedKeysFile ${AUTHORIZED_KEYS}`,
        'PermitUserRC no',
        'PermitRootLogin prohibit-password',
        'PasswordAuthentication no',
        'KbdInteractiveAuthentication no',
        'UsePAM no',
        'UseDNS no',
        'PrintMotd no',
        'MaxSessions 200',
        'MaxStartups 200',
        'StreamLocalBindUnlink yes',
        '',
      ].join('\n'),
    },
    {
      path: '/etc/udev/rules.d/40-rdctl.rules',
      mode: 0o644,
      text: 'SUBSYSTEM=="cpu", ACTION=="add", TEST=="online", ATTR{online}=="0", ATTR{online}="1"\n',
    },
    // The initial RAM disk only needs the drivers for these disks; every other module is loaded from the root disk.
    { path: '/etc/initramfs-tools/conf.d/rdctl', mode: 0o644, text: 'MODULES=list\n' },
    { path: '/etc/initramfs-tools/modules', mode: 0o644, text: 'virtio_pci\nvirtio_blk\ncrc32c_generic\next4\n' },
    { path: '/etc/sysctl.d/40-rdctl.conf', mode: 0o644, text: 'net.ipv4.ip_forward=1\n' },
  ];
}

const ENABLED = ['systemd-networkd.service', 'ssh.service', 'rdctl-boot.service', NAMES_UNIT];
/** The service starts the engines itself, so that it can configure them. */
const DISABLED = ['docker.service', 'docker.socket', 'containerd.service', 'ssh.socket'];
const MASKED = (architecture: Architecture) => [
  'systemd-networkd-wait-online.service',
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'getty@tty1.service',
  `serial-getty@${ARCHITECTURES[architecture].console}.service`,
  // Without hardware virtualization, every program run at boot delays it by a fraction of a second.
  'fstrim.timer',
  'systemd-pstore.service',
  'systemd-update-utmp.service',
  'systemd-update-utmp-runlevel.service',
  'systemd-repart.service',
  'modprobe@drm.service',
  'sys-kernel-config.mount',
  'sys-kernel-debug.mount',
  'sys-kernel-tracing.mount',
];

/** Directory in the finished root with the files of the image. */
export const RESULTS = '/rdctl-image';
/** File in `RESULTS` that lists installed packages, with a line `NAME VERSION SHA256` each. */
export const PACKAGE_LIST = 'packages';

/** Path of the finish script while it runs in the root. Passed as an argument, it would clutter the output of mmdebstrap. */
export const FINISH_PATH = '/rdctl-finish';
/**
 * Finishes the root and writes the disk image into the root itself. Runs where the root is owned by (namespaced) root, who may have no
 * access to the user's home directory. Argument: the root.
 */
export const finishScript = (architecture: Architecture) => `set -eu
root=$1
rm "$root${FINISH_PATH}"
: "\${RDCTL_ROOT_BYTES:?}"
rm -f "$root"/etc/ssh/ssh_host_*
mv "$root/root" "$root${ROOT_HOME}"
install -d -m 700 "$root/root"
sed -i 's,^\\(root:[^:]*:0:0:[^:]*\\):/root:,\\1:${ROOT_HOME}:,' "$root/etc/passwd"
grep -q '^root:.*:${ROOT_HOME}:' "$root/etc/passwd"
# That of the root: the computer that builds the image may have none.
chroot "$root" env SYSTEMD_OFFLINE=1 systemctl --quiet enable ${ENABLED.join(' ')}
chroot "$root" env SYSTEMD_OFFLINE=1 systemctl --quiet disable ${DISABLED.join(' ')}
chroot "$root" env SYSTEMD_OFFLINE=1 systemctl --quiet mask ${MASKED(architecture).join(' ')}
${emulationScript(architecture)}chroot "$root" update-initramfs -u -k all
# One line per package: name, version, and the checksum of its file.
chroot "$root" dpkg-query --show --showformat '\${Package}=\${Version}\\n' >"$root/tmp/installed"
chroot "$root" xargs apt-cache show <"$root/tmp/installed" | awk '
  /^Package: / { name = $2 }
  /^Version: / { version = $2 }
  /^SHA256: / { print name, version, $2 }
' | sort -u >"$root/tmp/${PACKAGE_LIST}"
test "$(wc -l <"$root/tmp/${PACKAGE_LIST}")" -eq "$(wc -l <"$root/tmp/installed")"
# Marks /etc and /var as up to date, so that the first boot skips systemd's update services.
touch "$root/etc/.updated" "$root/var/.updated"
out=$(mktemp -d "\${root%/}.XXXXXX")
trap 'if mountpoint -q "$out/bare"; then umount "$out/bare"; fi && rm -rf "$out"' EXIT
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd"
mv "$root/tmp/${PACKAGE_LIST}" "$out/"
rm "$root/tmp/installed"
rm -rf "$root"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
# A bind mount without submounts hides the file systems mounted in the root (proc, sys, dev).
mkdir "$out/bare"
mount --bind "$root" "$out/bare"
truncate -s "$RDCTL_ROOT_BYTES" "$out/disk.raw"
mke2fs -q -t ext4 -L rdctl-root -d "$out/bare" "$out/disk.raw"
qemu-img convert -f raw -O qcow2 "$out/disk.raw" "$out/disk.qcow2"
mkdir "$root${RESULTS}"
mv "$out/vmlinuz" "$out/initrd" "$out/disk.qcow2" "$out/${PACKAGE_LIST}" "$root${RESULTS}/"
`;

/** Returns the SHA-256 of everything that rdctl adds to the packages; lower-case hexadecimal. */
export function recipeSum(architecture: Architecture): string {
  const parts = [ROOT_BYTES, pathOptions(architecture), rootFiles(architecture), finishScript(architecture)];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
