// The systems that `npm run dist` makes a file for, and where the runtime of each comes from.

/** The runtime and its compiler, from the npm registry. Whoever changes it changes the integrity of every target. */
export const RUNTIME_VERSION = '1.4.5';

export interface Target {
  /** In the name of the file: `rdctl-0.1.0-linux-x64`. */
  name: string;
  /** What the compiler calls it. */
  compilerTarget: string;
  package: string;
  /** Subresource integrity of the package's archive, as the registry gives it. */
  integrity: string;
  /** The runtime inside the package. */
  program: string;
  format: 'elf' | 'mach-o' | 'pe';
  machine: 'x64' | 'arm64';
}

export const TARGETS: readonly Target[] = [
  {
    name: 'linux-x64',
    compilerTarget: 'bun-linux-x64',
    package: '@oven/bun-linux-x64',
    integrity: 'sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==',
    program: 'bin/bun',
    format: 'elf',
    machine: 'x64',
  },
  {
    name: 'linux-arm64',
    compilerTarget: 'bun-linux-arm64',
    package: '@oven/bun-linux-aarch64',
    integrity: 'sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==',
    program: 'bin/bun',
    format: 'elf',
    machine: 'arm64',
  },
  {
    name: 'darwin-arm64',
    compilerTarget: 'bun-darwin-arm64',
    package: '@oven/bun-darwin-aarch64',
    integrity: 'sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==',
    program: 'bin/bun',
    format: 'mach-o',
    machine: 'arm64',
  },
  {
    name: 'darwin-x64',
    compilerTarget: 'bun-darwin-x64',
    package: '@oven/bun-darwin-x64',
    integrity: 'sha512-qkLPMGHZM9NI6CeHTWwVezzmlo6cC4Ta7yUAjYIWXS366qQcOlcp75t2uZyiuVRBMPS0h9qE0tCcvCHGaFqjJg==',
    program: 'bin/bun',
    format: 'mach-o',
    machine: 'x64',
  },
  {
    name: 'windows-x64',
    compilerTarget: 'bun-windows-x64',
    package: '@oven/bun-windows-x64',
    integrity: 'sha512-FNvply651vcE/GHgNWz6mZvhmkwBuu8Hw54oNzA+CQog+HW+542rXQmZqNHRkFxazD9L3xi+iTtvO3engAgJfw==',
    program: 'bin/bun.exe',
    format: 'pe',
    machine: 'x64',
  },
];

/** The target of this computer; it compiles for all of them. */
export function ownTarget(platform: string = process.platform, arch: string = process.arch): Target | undefined {
  const name = `${platform === 'win32' ? 'windows' : platform}-${arch}`;
  return TARGETS.find((target) => target.name === name);
}

/** @throws Error that names the targets there are. */
export function targetsNamed(names: string): readonly Target[] {
  return names.split(',').map((name) => {
    const found = TARGETS.find((target) => target.name === name);
    if (!found)
      throw new Error(`there is no target ${JSON.stringify(name)}: ${TARGETS.map((each) => each.name).join(', ')}`);
    return found;
  });
}

/** Name of the file of a target. */
export function fileName(version: string, { name, format }: Target): string {
  return `rdctl-${version}-${name}${format === 'pe' ? '.exe' : ''}`;
}
