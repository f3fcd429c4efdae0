import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { InsidePackage } from './inside.ts';
import { RELINK } from './relink.ts';
import { RUNTIME, RUNTIME_LIBRARIES, type RuntimeLibrary } from './runtime-libraries.ts';
import { POLYFILL_TEXTS, RUNTIME_POLYFILLS } from './runtime-polyfills.ts';
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

/** Long texts that several libraries have: each is once at the end, under this name. */
const SHARED: Readonly<Record<string, string>> = {
  'LGPL-2.0.txt': 'GNU Library General Public License, version 2',
  'LGPL-2.1.txt': 'GNU Lesser General Public License, version 2.1',
  'MPL-2.0.txt': 'Mozilla Public License, version 2.0',
};
const APACHE = 'Apache License, version 2.0';

/** All licenses of a standalone file: ours, of the packages, of the runtime, and of what is linked into that. */
export function standaloneLicenses(packages: readonly InsidePackage[]): string {
  const polyfills = RUNTIME_POLYFILLS.map(({ name }) => name).join(', ');
  return `${[
    `rdctl is under the ${APACHE}.\n\n${textOf('LICENSE')}`,
    packageLicenses(packages).trim(),
    titled(`${RUNTIME.name} ${RUNTIME_VERSION} (${RUNTIME.license}), the runtime, ${RUNTIME.url}`),
    [...RUNTIME.copyright, '', ...RUNTIME.texts.map(textOf)].join('\n'),
    `The libraries that follow are linked into it. The list is that of its LICENSE.md, with what it reports of itself besides; the
package of the registry has neither the list nor the texts. Packages of Rust that are compiled into it are not listed there.`,
    ...RUNTIME_LIBRARIES.map(libraryLicenses),
    titled('JavaScriptCore and tinycc'),
    RELINK,
    titled('Packages that the runtime has built in for modules of Node'),
    `It lists these, without versions: ${polyfills.replace(/(.{60,74}), /g, '$1,\n')}.
The texts are those of the releases that the registry had, and of all packages that these need.`,
    textOf(POLYFILL_TEXTS),
    ...Object.entries(SHARED).flatMap(([file, title]) => [titled(title), textOf(file)]),
  ].join('\n\n')}\n`;
}

/** Name, notices and texts of a library; a text that is elsewhere in the file is referred to. */
function libraryLicenses({ name, license, url, copyright, texts, note, only }: RuntimeLibrary): string {
  const inline = texts.filter((file) => file !== 'LICENSE' && SHARED[file] === undefined);
  const elsewhere = [
    ...(texts.includes('LICENSE') ? [`The ${APACHE}, is at the beginning of this file.`] : []),
    ...texts.flatMap((file) =>
      SHARED[file] === undefined ? [] : [`The ${SHARED[file]}, is at the end of this file.`],
    ),
  ];
  return [
    titled(`${name} (${license}), ${url}${only ? `, in files for ${only}` : ''}`),
    copyright.join('\n'),
    note ?? '',
    elsewhere.join('\n'),
    ...inline.map(textOf),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function titled(title: string): string {
  return `${LINE}\n${title}\n${LINE}`;
}

/** A license text that comes with this repository: a file in `license-texts/`, or LICENSE. */
export function textOf(file: string): string {
  return readFileSync(file === 'LICENSE' ? file : join('release', 'license-texts', file), 'utf8').trim();
}
