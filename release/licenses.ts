import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { InsidePackage } from './inside.ts';
import { RELINK, RUNTIME, RUNTIME_LIBRARIES, RUNTIME_POLYFILLS } from './runtime-libraries.ts';
import { RUNTIME_VERSION } from './targets.ts';

const LINE = '-'.repeat(78);

/** The licenses of the packages, each text once, with the packages that have it. */
export function packageLicenses(packages: readonly InsidePackage[]): string {
  const byText = new Map<string, InsidePackage[]>();
  for (const each of packages) {
    const text = each.texts.join('\n\n').replaceAll('\r\n', '\n');
    byText.set(text, [...(byText.get(text) ?? []), each]);
  }
  const parts = [...byText].map(([text, owners]) => {
    const names = owners.map(({ name, version, license }) => `${name} ${version} (${license})`);
    return `${LINE}\n${names.join('\n')}\n${LINE}\n\n${text}\n`;
  });
  return `These packages are included, under the licenses that follow.\n\n${parts.join('\n')}`;
}

/** All licenses of a standalone file: ours, of the packages, and of the runtime. */
export function standaloneLicenses(packages: readonly InsidePackage[]): string {
  const libraries = RUNTIME_LIBRARIES.map(
    ({ name, license, url, only }) => `  ${name} (${license}) ${url}${only ? `, in files for ${only}` : ''}`,
  );
  const text = (file: string) => readFileSync(join('release', 'license-texts', file), 'utf8').trim();
  return `${[
    `rdctl is under the Apache License 2.0.\n\n${readFileSync('LICENSE', 'utf8').trim()}`,
    packageLicenses(packages).trim(),
    `${LINE}\n${RUNTIME.name} ${RUNTIME_VERSION} (${RUNTIME.license}), the runtime, ${RUNTIME.url}\n${LINE}`,
    `It is linked with these libraries. The whole text of each license is with its source.\n\n${libraries.join('\n')}`,
    `It has these packages built in, all under the MIT license:\n\n  ${RUNTIME_POLYFILLS.join(', ').replace(/(.{60,74}), /g, '$1,\n  ')}`,
    RELINK.replace('%VERSION%', RUNTIME_VERSION),
    `${LINE}\nMIT license\n${LINE}\n\n${text('MIT.txt')}`,
    `${LINE}\nGNU Library General Public License, version 2\n${LINE}\n\n${text('LGPL-2.0.txt')}`,
    `${LINE}\nGNU Lesser General Public License, version 2.1\n${LINE}\n\n${text('LGPL-2.1.txt')}`,
  ].join('\n\n')}\n`;
}
