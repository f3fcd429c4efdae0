import { PRODUCT } from '../src/product.ts';

/** What the manifests say of a release. */
export interface ReleaseFacts {
  version: string;
  /** Address of the directory that has the files. */
  base: string;
  /** SHA-256 of each file by the name of its target. */
  sums: Readonly<Record<string, { file: string; sha256: string }>>;
}

const ABOUT = 'Declarative control of a container desktop';
const UNTESTED = 'Generated, and never tried with its package manager.';
const IDENTIFIER = 'rdctl.rdctl';
/** Of the winget schema that the manifests follow. */
const WINGET = '1.6.0';

/**
 * A formula for Homebrew, and manifests for scoop and winget, by file name; each only if the release has its files.
 * @throws Error for an address that is not `https:`.
 */
export function manifests(facts: ReleaseFacts): Map<string, string> {
  const base = facts.base.replace(/\/+$/, '');
  if (!URL.canParse(base) || new URL(base).protocol !== 'https:' || /["'\\\s#{}]/.test(base)) {
    throw new Error(`--base-url must be an https address: ${JSON.stringify(facts.base)}`);
  }
  const at = (target: string) => {
    const found = facts.sums[target];
    return found && { url: `${base}/${found.file}`, sha256: found.sha256, file: found.file };
  };
  const files = new Map<string, string>();
  const brew = [at('darwin-arm64'), at('darwin-x64'), at('linux-arm64'), at('linux-x64')] as const;
  if (brew.every((each) => each !== undefined)) files.set('homebrew/rdctl.rb', formula(facts.version, base, brew));
  const windows = at('windows-x64');
  if (windows) {
    files.set('scoop/rdctl.json', scoop(facts.version, base, windows));
    for (const [name, text] of winget(facts.version, base, windows)) files.set(`winget/${name}`, text);
  }
  return files;
}

interface Download {
  url: string;
  sha256: string;
  file: string;
}

function formula(version: string, base: string, files: readonly Download[]): string {
  const [macArm, macIntel, linuxArm, linuxIntel] = files.map(
    ({ url, sha256 }) => `url "${url}"\n      sha256 "${sha256}"`,
  );
  return `# ${UNTESTED}
class Rdctl < Formula
  desc "${ABOUT}"
  homepage "${base}"
  version "${version}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      ${macArm}
    end
    on_intel do
      ${macIntel}
    end
  end

  on_linux do
    on_arm do
      ${linuxArm}
    end
    on_intel do
      ${linuxIntel}
    end
  end

  def install
    bin.install Dir["rdctl-*"].first => "rdctl"
    chmod 0755, bin/"rdctl"
    generate_completions_from_executable(bin/"rdctl", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rdctl version")
  end
end
`;
}

function scoop(version: string, base: string, { url, sha256, file }: Download): string {
  const manifest = {
    '##': UNTESTED,
    version,
    description: ABOUT,
    homepage: base,
    license: 'Apache-2.0',
    architecture: { '64bit': { url, hash: sha256, bin: [[file, PRODUCT.name]] } },
  };
  return `${JSON.stringify(manifest, null, 4)}\n`;
}

/** The three files of a version. */
function winget(version: string, base: string, { url, sha256 }: Download): [string, string][] {
  const file = (kind: string, lines: readonly string[]) =>
    [
      `# ${UNTESTED}`,
      `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${kind}.${WINGET}.schema.json`,
      `PackageIdentifier: ${IDENTIFIER}`,
      `PackageVersion: ${JSON.stringify(version)}`,
      ...lines,
      `ManifestType: ${kind}`,
      `ManifestVersion: ${WINGET}`,
      '',
    ].join('\n');
  return [
    [`${IDENTIFIER}.yaml`, file('version', ['DefaultLocale: en-US'])],
    [
      `${IDENTIFIER}.locale.en-US.yaml`,
      file('defaultLocale', [
        'PackageLocale: en-US',
        'Publisher: rdctl authors',
        'PackageName: rdctl',
        `PackageUrl: ${base}`,
        'License: Apache-2.0',
        `ShortDescription: ${ABOUT}`,
      ]),
    ],
    [
      `${IDENTIFIER}.installer.yaml`,
      file('installer', [
        'MinimumOSVersion: 10.0.17763.0',
        'InstallerType: portable',
        'Commands:',
        '- rdctl',
        'Installers:',
        '- Architecture: x64',
        `  InstallerUrl: ${url}`,
        // Quoted, because digits alone would be a number.
        `  InstallerSha256: "${sha256.toUpperCase()}"`,
      ]),
    ],
  ];
}
