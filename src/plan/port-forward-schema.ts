import type { JsonObject } from '../json.ts';

/** Names of namespaces and services, and of ports, as a cluster accepts them. */
const LABEL = '^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$';
const PORT_NAME = '^(?=[-0-9]*[a-z])[a-z0-9](?:-?[a-z0-9]){0,14}$';
const PORT: JsonObject = { type: 'integer', minimum: 1, maximum: 65_535 };

/** The JSON Schema of a port forward of a profile, for editors (`schemas/profile.json`) and for requests of plans. */
export const PORT_FORWARD_SCHEMA: JsonObject = {
  type: 'object',
  additionalProperties: false,
  required: ['namespace', 'service', 'k8sPort', 'hostPort'],
  properties: {
    namespace: { type: 'string', pattern: LABEL },
    service: { type: 'string', pattern: LABEL },
    k8sPort: {
      description: 'Number or name of the service port.',
      anyOf: [PORT, { type: 'string', pattern: PORT_NAME }],
    },
    hostPort: {
      description: 'Port on this computer; null removes the forward.',
      anyOf: [PORT, { type: 'null' }],
    },
  },
};
