import type { ShapeError } from '../settings/validators/check.ts';

/** What is wrong with a document, as a clause. Values are left out: one of them may be a password. */
export function shapeProblems(errors: readonly ShapeError[]): string {
  const lines = errors.map(({ instancePath, keyword, params }) => {
    const where = instancePath === '' ? 'the document' : instancePath.slice(1).replaceAll('/', '.');
    const wanted = params.type ?? params.allowedValues ?? params.limit ?? params.missingProperty;
    return wanted === undefined
      ? `${where} is wrong (${keyword})`
      : `${where} is wrong (${keyword} ${JSON.stringify(wanted)})`;
  });
  return [...new Set(lines)].join('; ');
}
