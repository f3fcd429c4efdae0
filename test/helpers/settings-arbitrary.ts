import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform, SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { mergeSettings } from '../../src/settings/merge.ts';
import type { SettingPath, Settings } from '../../src/settings/settings.gen.ts';
import { type ValidateContext, validate } from '../../src/settings/validate.ts';

/** Versions in generated settings; `''` leaves the choice to the service. */
const KUBERNETES_VERSIONS = ['1.32.1', '1.31.5', '1.30.2', '1.29.4'] as const;

/** A computer whose validation context the generators use. */
export function contextOn(platform: Platform, current?: Settings): ValidateContext {
  const arch = platform === 'darwin' ? 'arm64' : 'x64';
  const host = { platform, arch, ...(platform === 'darwin' ? { osRelease: '23.1.0' } : {}) };
  return {
    current: current ?? defaultSettings(host),
    platform,
    arch,
    ...(platform === 'darwin' ? { osVersion: '14.5' } : {}),
    kubernetesVersions: KUBERNETES_VERSIONS,
  };
}

/** Any value that the setting accepts by itself, ignoring rules between settings. */
function valueArbitrary(field: SettingField): fc.Arbitrary<JsonValue> {
  const special = SPECIAL[field.path];
  if (special) return special;
  if (field.enum) return fc.constantFrom(...field.enum);
  switch (field.type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: field.min ?? 0, max: Math.min(field.max ?? 64, 100_000) });
    case 'string':
      return fc.string({ maxLength: 12 });
    case 'string[]':
      return fc.uniqueArray(imageName(), { maxLength: 4 });
    case 'map<string,boolean>':
      // In the registry, names that differ only in case are equal.
      return fc
        .uniqueArray(fc.tuple(fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,8}$/), fc.boolean()), {
          maxLength: 4,
          selector: ([name]) => name.toLowerCase(),
        })
        .map((entries) => Object.fromEntries(entries));
    case 'map<string,string>':
      return fc.dictionary(imageName(), tag(), { maxKeys: 3 });
  }
}

/** Complete valid settings that a service on that platform could have. */
export function settingsArbitrary(platform: Platform = 'linux'): fc.Arbitrary<Settings> {
  const context = contextOn(platform);
  return payloadArbitrary(platform).map((payload) => mergeSettings(context.current, payload));
}

/** A partial object with `version` that can be applied to the defaults of the platform. */
export function payloadArbitrary(platform: Platform = 'linux'): fc.Arbitrary<JsonObject> {
  return anyPayloadArbitrary(platform).map((payload) => validPart(payload, contextOn(platform)));
}

/** Like `payloadArbitrary`, with values that may conflict; `validPart` removes those. */
export function anyPayloadArbitrary(platform: Platform = 'linux'): fc.Arbitrary<JsonObject> {
  const fields = FIELDS.filter((field) => field.path !== 'version' && field.platforms.includes(platform));
  const values = Object.fromEntries(fields.map((field) => [field.path, valueArbitrary(field)]));
  return fc.record(values, { requiredKeys: [] }).map((chosen) => {
    const payload: JsonObject = { version: 19 };
    for (const [path, value] of Object.entries(chosen)) if (value !== undefined) setLeaf(payload, path, value);
    return payload;
  });
}

/** The payload without the settings that cannot be applied to `context.current`. */
export function validPart(payload: JsonObject, context: ValidateContext): JsonObject {
  const wrong = new Set(validate(payload, context).map(({ path }) => path));
  if (wrong.size === 0) return payload;
  const part: JsonObject = { version: 19 };
  for (const { path } of FIELDS) {
    const value = leafAt(payload, path);
    if (value !== undefined && !wrong.has(path)) setLeaf(part, path, value);
  }
  return validPart(part, context);
}

const SPECIAL: Readonly<Partial<Record<SettingPath, fc.Arbitrary<JsonValue>>>> = {
  'kubernetes.version': fc.constantFrom('', ...KUBERNETES_VERSIONS),
  'experimental.virtualMachine.diskSize': fc
    .tuple(fc.integer({ min: 100, max: 900 }), fc.constantFrom('GiB', 'gib', ' GiB', 'TB', 'TiB'))
    .map(([size, unit]) => `${size}${unit}`),
  'experimental.virtualMachine.proxy.noproxy': fc.uniqueArray(
    fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain(), fc.constantFrom('10.0.0.0/8', '*.example.com', '.example.com')),
    { maxLength: 4 },
  ),
};

function imageName(): fc.Arbitrary<string> {
  return fc.stringMatching(/^[a-z0-9]{1,6}(\/[a-z0-9]{1,6}){0,2}$/);
}

function tag(): fc.Arbitrary<string> {
  return fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}$/);
}
