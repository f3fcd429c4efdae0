/** Foreign architectures whose programs run in the guest, each with its emulator and its class and machine in the ELF header. */
const EMULATED = { aarch64: { bits: '02', machine: 'b7' }, arm: { bits: '01', machine: '28' } };
const NAMES = Object.keys(EMULATED);

/** Installs only these two of about forty emulators in the package, which has 465 MB. dpkg applies the last matching option. */
export const EMULATOR_OPTIONS: readonly string[] = [
  'path-exclude=/usr/bin/qemu-*',
  'path-exclude=/usr/lib/binfmt.d/qemu-*',
  ...NAMES.flatMap((name) => [`path-include=/usr/bin/qemu-${name}`, `path-include=/usr/bin/qemu-${name}-static`]),
];

const repeated = (byte: string, count: number) => `\\x${byte}`.repeat(count);
/** Ignores the ABI bytes, and matches shared objects (position-independent programs) as well as plain executables. */
const MASK = `${repeated('ff', 7)}${repeated('00', 1)}${repeated('ff', 8)}${repeated('fe', 1)}${repeated('ff', 3)}`;

/**
 * Registers the emulators with the kernel. `F`: keep them open, so that containers can use them without having the files; `P`: preserve
 * `argv[0]`; `O`: also run programs that are executable but not readable.
 */
const REGISTRATION = Object.entries(EMULATED)
  .map(([name, { bits, machine }]) => {
    const magic = `\\x7fELF\\x${bits}\\x01\\x01${repeated('00', 9)}\\x02\\x00\\x${machine}\\x00`;
    return `:qemu-${name}:M::${magic}:${MASK}:/usr/bin/qemu-${name}:OPF\n`;
  })
  .join('');

/** Replaces systemd's own unit, which every other unit waits for. */
const UNIT_TEXT = `[Unit]
Description=Emulators for programs of other architectures
DefaultDependencies=no
Requires=proc-sys-fs-binfmt_misc.mount
After=proc-sys-fs-binfmt_misc.mount

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/systemd/systemd-binfmt
`;

export const EMULATION_FILES = [
  { path: '/etc/binfmt.d/rdctl.conf', mode: 0o644, text: REGISTRATION },
  { path: '/etc/systemd/system/systemd-binfmt.service', mode: 0o644, text: UNIT_TEXT },
];

/** Debian 12 names the static emulators differently. */
export const EMULATION_SCRIPT = `for name in ${NAMES.join(' ')}; do
  [ -e "$root/usr/bin/qemu-$name" ] || ln -s "qemu-$name-static" "$root/usr/bin/qemu-$name"
  test -x "$root/usr/bin/qemu-$name"
done
`;
