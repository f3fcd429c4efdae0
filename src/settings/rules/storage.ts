import { parseByteSize } from '../byte-size.ts';
import { conflict, type Rule, type RuleInput } from './rule.ts';

const WEB_ASSEMBLY = 'experimental.containerEngine.webAssembly.enabled';

/** A disk grows or stays; a stored size that cannot be read forbids nothing, nor does one that no disk has come to. */
export const diskSize: Rule = ({ field, desired, current, changed, context }) => {
  const bytes = changed && typeof desired === 'string' ? parseByteSize(desired) : undefined;
  const before = typeof current === 'string' ? parseByteSize(current) : undefined;
  if (bytes === undefined || before === undefined || bytes >= before) return [];
  const { diskBytes = before } = context;
  if (bytes >= diskBytes) return [];
  const least = diskBytes < before ? `${diskBytes / 2 ** 30}GiB` : current;
  const message = `Cannot decrease "${field.path}" from ${current} to ${desired}`;
  return [{ code: 'decrease', message, fatal: false, expected: `at least "${least}"` }];
};

/** The classic store of moby holds no WebAssembly images. Each of the three settings has its own line. */
export function classicStore(message: string): Rule {
  return (input) => (input.changed && isClassicWithWebAssembly(input) ? conflict(message) : []);
}

/** The Spin operator runs WebAssembly. */
export const spinOperator: Rule = ({ field, desired, changes, result }) => {
  const takesPart = changes(field.path) || changes('kubernetes.enabled') || changes(WEB_ASSEMBLY);
  if (!desired || !takesPart || result('kubernetes.enabled') !== true || result(WEB_ASSEMBLY)) return [];
  return conflict(
    `Setting ${field.path} can only be set when experimental.container-engine.web-assembly.enabled is set as well.`,
  );
};

function isClassicWithWebAssembly({ result }: RuleInput): boolean {
  return (
    result('containerEngine.name') === 'moby' &&
    Boolean(result(WEB_ASSEMBLY)) &&
    result('containerEngine.mobyStorageDriver') === 'classic'
  );
}
