import { expect, test } from 'vitest';
import { digestOf, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { PRODUCT } from '../../src/product.ts';
import { startApi } from '../helpers/api.ts';

/** What people read, which no program depends on. */
const TEXTS = new Set(['description', 'summary', 'title', 'example', 'examples', 'tags', 'info']);

/**
 * A tool only asks a service of its own revision. When this fails, decide whether a tool from before the change understands a service from after
 * it, and the other way around, as after a new optional member that nothing relies on. If not, increase `PRODUCT.revision`. Then `-u`.
 */
test('the interface between tool and service has one revision for each form', async () => {
  const { client } = startApi();
  const { body } = await client.request({ method: 'GET', path: '/v2/openapi.json' });
  const { paths, components } = JSON.parse(body.toString());
  const own = Object.fromEntries(Object.entries(paths as JsonObject).filter(([path]) => path.startsWith('/v2/')));
  const digest = digestOf(withoutTexts({ own, components }));
  await expect(`revision ${PRODUCT.revision}: ${digest}\n`).toMatchFileSnapshot('../golden/api-revision.txt');
});

function withoutTexts(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([key, member]) => !TEXTS.has(key) || isObject(member));
  return Object.fromEntries(kept.map(([key, member]) => [key, withoutTexts(member)]));
}
