import { ARCHITECTURES, type Architecture, EXECUTABLES } from './architecture.ts';

/**
 * Returns the dpkg options that install only two of about forty emulators in the package, which has 465 MB. dpkg applies the last matching option.
 */
export function emulatorOptions(architecture: Architecture): readonly string[] {
  return [
    'path-exclude=/usr/bin/qemu-*',
    'path-exclude=/usr/lib/binfmt.d/qemu-*',
    ...ARCHITECTURES[architecture].emulates.flatMap((name) => [
      `path-include=/usr/bin/qemu-${name}`,
      `path-include=/usr/bin/qemu-${name}-static`,
    ]),
  ];
}

const repeated = (byte: string, count: number) => `\\x${byte}`.repeat(count);
/** Ignores the ABI bytes, and matches shared objects (position-independent programs) as well as plain executables. */
const MASK = `${repeated('ff', 7)}${repeated('00', 1)}${repeated('ff', 8)}${repeated('fe', 1)}${repeated('ff', 3)}`;

/**
 * Returns the text that registers the emulators with the kernel. `F`: keep them open, so that containers can use them without having the files; `P`:
 * preserve `argv[0]`; `O`: also run programs that are executable but not readable.
 */
function registration(architecture: Architecture): string {
  const lines = ARCHITECTURES[architecture].emulates.map((name) => {
    const { bits, machine } = EXECUTABLES[name];
    const magic = `\\x7fELF\\x${bits}\\x01\\x01${repeated('00', 9)}\\x02\\x00\\x${machine}\\x00`;
    return `:qemu-${name}:M::${magic}:${MASK}:/usr/bin/qemu-${name}:OPF\n`;
  });
  return lines.join('');
}

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

export function emulationFiles(architecture: Architecture) {
  return [
    { path: '/etc/binfmt.d/rdctl.conf', mode: 0o644, text: registration(architecture) },
    { path: '/etc/systemd/system/systemd-binfmt.service', mode: 0o644, text: UNIT_TEXT },
  ];
}

/** Returns the script that sets up the emulators. Debian 12 names the static ones differently. */
export function emulationScript(architecture: Architecture): string {
  return `for name in ${ARCHITECTURES[architecture].emulates.join(' ')}; do
  [ -e "$root/usr/bin/qemu-$name" ] || ln -s "qemu-$name-static" "$root/usr/bin/qemu-$name"
  test -x "$root/usr/bin/qemu-$name"
done
`;
}
