import { createHash } from 'node:crypto';
import type { InsidePackage } from './inside.ts';
import { RUNTIME, RUNTIME_LIBRARIES } from './runtime-libraries.ts';
import { RUNTIME_POLYFILLS } from './runtime-polyfills.ts';
import { RUNTIME_VERSION, type Target } from './targets.ts';

/** The bill of materials of one file, as CycloneDX 1.6. Without a time and with a number of its content: two builds write the same bytes. */
export function sbom(
  file: { name: string; version: string; target: Target; sha256: string },
  packages: readonly InsidePackage[],
): string {
  const { target } = file;
  const root = purl('rdctl', file.version);
  const runtime = purl(target.package, RUNTIME_VERSION);
  const components = [...packages.map(packageComponent), runtimeComponent(target, runtime)];
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(`${file.name} ${file.sha256}`)}`,
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': root,
        name: 'rdctl',
        version: file.version,
        purl: root,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        hashes: [{ alg: 'SHA-256', content: file.sha256 }],
        properties: [
          { name: 'rdctl:file', value: file.name },
          { name: 'rdctl:target', value: target.name },
        ],
      },
    },
    components,
    dependencies: [{ ref: root, dependsOn: components.map((each) => each['bom-ref']) }],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function packageComponent({ name, version, license, integrity, folder }: InsidePackage) {
  return {
    type: 'library',
    // The same version may be there twice, in different folders.
    'bom-ref': `${purl(name, version)}#${folder}`,
    ...named(name),
    version,
    purl: purl(name, version),
    licenses: licensesOf(license),
    hashes: hashesOf(integrity),
  };
}

function runtimeComponent(target: Target, ref: string) {
  const linked = RUNTIME_LIBRARIES.filter(({ only }) => only === undefined || target.name.startsWith(only));
  return {
    type: 'platform',
    'bom-ref': ref,
    ...named(target.package),
    version: RUNTIME_VERSION,
    purl: ref,
    licenses: licensesOf(RUNTIME.license),
    hashes: hashesOf(target.integrity),
    components: [
      ...linked.map(({ name, license, url }) => ({
        type: 'library',
        'bom-ref': `${ref}#${name}`,
        name,
        licenses: licensesOf(license),
        externalReferences: [{ type: 'vcs', url }],
      })),
      ...RUNTIME_POLYFILLS.map(({ name, license }) => ({
        type: 'library',
        'bom-ref': `${ref}#polyfill-${name}`,
        name,
        licenses: licensesOf(license),
      })),
    ],
  };
}

function named(name: string): { group?: string; name: string } {
  const [group, short] = name.split('/');
  return short === undefined || group === undefined ? { name } : { group, name: short };
}

function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function licensesOf(expression: string) {
  return /[ ()]/.test(expression) ? [{ expression }] : [{ license: { id: expression } }];
}

function hashesOf(integrity: string) {
  const [algorithm, digest = ''] = integrity.split('-');
  if (algorithm !== 'sha512') throw new Error(`${integrity} is not a SHA-512`);
  return [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }];
}

/** A UUID (version 8) made of a digest. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
