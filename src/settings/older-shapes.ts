import type { JsonObject } from '../json.ts';
import { fieldAt } from './fields.ts';
import { pointerNames } from './leaf-paths.ts';
import { type ShapeFinding, shapeFindings } from './shape-findings.ts';
import { unknownKeys } from './unknown-keys.ts';
import type { ShapeCheck } from './validators/check.ts';
import { validate as version4 } from './validators/settings-v4.gen.js';
import { validate as version6 } from './validators/settings-v6.gen.js';
import { validate as version10 } from './validators/settings-v10.gen.js';
import { validate as version14 } from './validators/settings-v14.gen.js';
import { validate as version16 } from './validators/settings-v16.gen.js';

/** Newest first. Each shape also stands for the versions up to the next one, and the oldest for all before it. */
const SHAPES: readonly { from: number; check: ShapeCheck<JsonObject> }[] = [
  { from: 16, check: version16 },
  { from: 14, check: version14 },
  { from: 10, check: version10 },
  { from: 6, check: version6 },
  { from: 1, check: version4 },
];

/**
 * What is wrong with a document of a version before the newest, in the shape of that version; without positions. Where
 * releases of one version differed, each of their forms passes.
 */
export function validateShape(document: JsonObject, version: number): ShapeFinding[] {
  const shape = SHAPES.find(({ from }) => version >= from);
  if (!shape) return [];
  return shapeFindings(shape.check, document).map((finding) => explained(finding, document, version));
}

/** Tells why a key is unknown: it is newer than the document says, or it looks like another one. */
function explained(finding: ShapeFinding, document: JsonObject, version: number): ShapeFinding {
  if (finding.keyword !== 'additionalProperties') return finding;
  const path = pointerNames(finding.pointer).join('.');
  const field = fieldAt(path);
  if (field) {
    const message = `"${path}" came with settings version ${field.since}, and this document says ${version}`;
    return { ...finding, message, expected: `"version: ${field.since}" or newer` };
  }
  const suggestion = unknownKeys(document).find(({ pointer }) => pointer === finding.pointer)?.suggestion;
  return { ...finding, message: `unknown setting "${path}"`, ...(suggestion ? { suggestion: `"${suggestion}"` } : {}) };
}
