import { resolve } from 'node:path';
import { ranProgram } from './program.ts';

/** The objections of xmllint to property lists under the rules of the format; empty when it accepts all. Fetches nothing. */
export function againstPlistRules(paths: readonly string[]): string {
  return complaints(['--dtdvalid', resolve('test/helpers/proof/plist-1.0.dtd')], paths);
}

/** The objections of xmllint to XML files under a schema. */
export function againstSchema(schema: string, paths: readonly string[]): string {
  return complaints(['--schema', resolve(schema)], paths);
}

/** The DTD of a property list is on the network; skipping it is not an error. */
function complaints(rules: readonly string[], paths: readonly string[]): string {
  const ran = ranProgram(['xmllint', '--noout', '--nonet', ...rules, ...paths]);
  return ran.status === 0 ? '' : `status ${ran.status}: ${ran.err}`;
}
