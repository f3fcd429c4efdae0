import { expectedValue } from '../../../src/settings/rules/value.ts';
import { SCHEMA_VERSION } from '../../../src/settings/settings.gen.ts';
