import type { InsidePackage } from '../inside.ts';
import { RELINK } from '../relink.ts';
import { RUNTIME, RUNTIME_LIBRARIES } from '../runtime-libraries.ts';
import { RUNTIME_POLYFILLS } from '../runtime-polyfills.ts';
import { RUNTIME_VERSION } from '../targets.ts';

const FORMAT = 'https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/';

/** What Debian has in /usr/share/common-licenses is referred to, not repeated. */
const APACHE = `On Debian systems, the full text of the Apache License, Version 2.0, is in
/usr/share/common-licenses/Apache-2.0.`;
const LGPL = `On Debian systems, the full texts of the GNU Library General Public License, version 2, and of the GNU Lesser
General Public License, version 2.1, are in /usr/share/common-licenses/LGPL-2 and /usr/share/common-licenses/LGPL-2.1.`;
const NOTICES = 'The license texts of everything inside are in /usr/share/doc/rdctl/notices.txt.gz.';

/** debian/copyright in its machine-readable form, of the program with all that is in it. */
export function copyrightFile(packages: readonly InsidePackage[], year: string): string {
  const libraries = RUNTIME_LIBRARIES.filter(({ only }) => only === undefined);
  return [
    field('Format', FORMAT),
    `${field('Upstream-Name', 'rdctl')}${long(
      'Comment',
      '',
      `/usr/bin/rdctl is one program with its packages (npm/) and its runtime (runtime/) inside.\n${NOTICES}`,
    )}`,
    paragraph(['*'], [`${year} the rdctl authors`], 'Apache-2.0', APACHE),
    ...byText(packages).map((owners) => {
      const [first] = owners;
      const license = first.license.replaceAll(' AND ', ' and ').replaceAll(' OR ', ' or ').replace(/[()]/g, '');
      const text = first.texts.join('\n\n').replaceAll('\r\n', '\n');
      return paragraph(
        owners.map(({ name }) => `npm/${name}/*`),
        holders(text) ?? [`the authors of ${owners.map(({ name }) => name).join(', ')}`],
        license,
        license === 'Apache-2.0' ? APACHE : text,
      );
    }),
    paragraph(
      [`runtime/${RUNTIME.name}/*`],
      ['the authors of Bun, and of the libraries below'],
      'Expat and LGPL-2.0+ and LGPL-2.1+ and others',
      `${RUNTIME.name} ${RUNTIME_VERSION}, ${RUNTIME.url}, with these libraries linked into it:

${libraries.map(({ name, license, url }) => `${name} (${license}), ${url}`).join('\n')}

and these packages: ${RUNTIME_POLYFILLS.map(({ name, license }) => `${name} (${license})`).join(', ')}.

${RELINK}

${LGPL}
${NOTICES}`,
    ),
  ].join('\n');
}

/** Packages with the same license text, which are one paragraph. */
function byText(packages: readonly InsidePackage[]): [InsidePackage, ...InsidePackage[]][] {
  const groups = new Map<string, [InsidePackage, ...InsidePackage[]]>();
  for (const each of packages) {
    const key = `${each.license}\n${each.texts.join('\n\n')}`;
    const group = groups.get(key);
    if (group) group.push(each);
    else groups.set(key, [each]);
  }
  return [...groups.values()];
}

/** The lines of a license text that name who has the copyright. */
function holders(text: string): string[] | undefined {
  const found = [...text.matchAll(/^\W*copyright\s+(?:\(c\)|©|notice:?)?\s*((?:\d{4}|[A-Z]).*?)\s*$/gim)]
    .map(([, who = '']) => who)
    // Of the licenses' own sentences about a copyright.
    .filter((who) => !/^(?:notice|license|holders?|owners?|and|\[)/i.test(who));
  return found.length === 0 ? undefined : [...new Set(found)];
}

function paragraph(files: readonly string[], owners: readonly string[], license: string, text: string): string {
  return `${field('Files', files.join('\n '))}${field('Copyright', owners.join('\n '))}${long('License', license, text)}`;
}

function field(name: string, value: string): string {
  return `${name}: ${value}\n`;
}

/** A field of several lines, in which an empty one is a dot. */
function long(name: string, first: string, text: string): string {
  const lines = text.trim().split('\n');
  return `${name}:${first === '' ? '' : ` ${first}`}\n${lines.map((each) => ` ${each.trim() === '' ? '.' : each.trimEnd()}\n`).join('')}`;
}
