import type { Importer } from './importer.ts';

/** Every format that is read, in the order in which they are asked whether a file is theirs; loaded when one is read. One line each. */
export const IMPORTERS: readonly (() => Promise<Importer>)[] = [
  async () => (await import('./mobileconfig.ts')).mobileconfigImporter,
  async () => (await import('./plist.ts')).plistImporter,
  async () => (await import('./reg.ts')).regImporter,
  async () => (await import('./registry-pol.ts')).registryPolImporter,
  async () => (await import('./json.ts')).jsonImporter,
];
