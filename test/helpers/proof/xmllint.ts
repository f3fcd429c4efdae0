import { resolve } from 'node:path';
import { ranProgram } from './program.ts';

/** What xmllint has against property lists by the rules of the format; empty when it accepts them all. Fetches nothing. */
export function againstPlistRules(paths: readonly string[]): string {
  return complaints(['--dtdvalid', resolve('test/helpers/proof/plist-1.0.dtd')], paths);
}

/** What xmllint has against XML files by a schema. */
export function againstSchema(schema: string, paths: readonly string[]): string {
  return complaints(['--schema', resolve(schema)], paths);
}

/** The document type that a property list names is on the network; that it is left there is no complaint. */
function complaints(rules: readonly string[], paths: readonly string[]): string {
  const ran = ranProgram(['xmllint', '--noout', '--nonet', ...rules, ...paths]);
  return ran.status === 0 ? '' : `status ${ran.status}: ${ran.err}`;
}
