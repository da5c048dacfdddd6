import { type Static, Type } from 'typebox';
import { anyJson, listOf, objectName, opaqueObject, quantity, stringMap } from '../schema/fields.ts';

const argv = (description: string) => Type.Optional(listOf(Type.String({ maxLength: 32_768 }), 256, { description }));

const keep = (fields: string) =>
  Type.Optional(
    Type.Boolean({
      description: `Whether the access pod keeps ${fields}. Without controllerTargetMutationConfig, it does.`,
      default: false,
    }),
  );

const envVar = Type.Object({
  name: Type.String({ description: 'The name of the variable.', minLength: 1, maxLength: 1024 }),
  value: Type.Optional(Type.String({ description: 'The value of the variable.', maxLength: 131_072 })),
  valueFrom: Type.Optional(opaqueObject('The source of the value, as in a container of a Pod.')),
});

const quantities = (description: string) =>
  Type.Optional(
    Type.Record(Type.String(), quantity('The amount, such as 500m or 2Gi.'), { description, maxProperties: 64 }),
  );

const resources = Type.Object(
  {
    limits: quantities('The maximum amounts that the container may use.'),
    requests: quantities('The amounts that are reserved for the container.'),
    claims: Type.Optional(
      listOf(
        Type.Object({
          name: Type.String({ description: 'The name of an entry in the pod’s resourceClaims.', maxLength: 253 }),
          request: Type.Optional(Type.String({ description: 'One request of that claim.', maxLength: 253 })),
        }),
        32,
        { description: 'Resource claims that the container uses.' },
      ),
    ),
  },
  { description: 'The compute resources of the default container. If not empty, they replace those of the workload.' },
);

const patchOperation = Type.Object(
  {
    op: Type.Union(
      [
        Type.Literal('add'),
        Type.Literal('remove'),
        Type.Literal('replace'),
        Type.Literal('move'),
        Type.Literal('copy'),
        Type.Literal('test'),
      ],
      { description: 'The operation, by RFC 6902.' },
    ),
    path: Type.String({
      description: 'A JSON pointer into the pod template, for example /spec/containers/0/image.',
      maxLength: 1024,
      pattern: '^/(spec|metadata)(/([^/~]|~[01])*)*$',
    }),
    value: Type.Optional(anyJson('The value to add, to replace with, or to compare with: any JSON.')),
    from: Type.Optional(Type.String({ description: 'The JSON pointer to move or copy from.', maxLength: 1024 })),
  },
  {
    'x-kubernetes-validations': [
      {
        rule: "!(self.op in ['move', 'copy']) || has(self.from)",
        message: 'is missing; move and copy require it: the JSON pointer of the value to move or copy',
        reason: 'FieldValueRequired',
        fieldPath: '.from',
      },
    ],
  },
);

/** How the access pod of a request differs from the pods of the workload. */
export const controllerTargetMutationConfig = Type.Object(
  {
    defaultContainerName: Type.Optional(
      objectName(
        'The container that command, args, env, resources, and the keep…Probe fields change. Default: the container that the annotation kubectl.kubernetes.io/default-container names, else the first.',
      ),
    ),
    command: argv('Replaces the command of the default container, and empties its args.'),
    args: argv('Replaces the args of the default container.'),
    env: Type.Optional(listOf(envVar, 256, { description: 'Variables to append to those of the default container.' })),
    resources: Type.Optional(resources),
    podAnnotations: Type.Optional(stringMap('Annotations to add to the access pod.', 65_536)),
    podLabels: Type.Optional(
      stringMap(
        'Labels to add to the access pod. The pod keeps the workload’s labels that NetworkPolicies select by, unless another object would then select the pod.',
        63,
      ),
    ),
    nodeSelector: Type.Optional(stringMap('Node labels to require in addition to the workload’s.', 63)),
    purgeAnnotations: Type.Optional(
      Type.Boolean({
        description: 'Whether the server removes the workload’s annotations before it adds podAnnotations.',
        default: false,
      }),
    ),
    keepTerminationGracePeriod: Type.Optional(
      Type.Boolean({
        description:
          'Whether the access pod keeps the termination grace period of the workload. By default, it is at most one second. When access ends, the server always deletes the pod with a grace period of one second; kubelets wait at least two.',
        default: false,
      }),
    ),
    keepServiceAccount: Type.Optional(
      Type.Boolean({
        description:
          'Whether the access pod runs under the ServiceAccount of the workload, for example for its cloud identity. Kubernetes mounts its token if patchSpecOperations sets automountServiceAccountToken to true. The server also copies the projected token volumes of the workload. By default, it runs under the ServiceAccount default, with the image pull secrets of the workload.',
        default: false,
      }),
    ),
    keepLivenessProbe: keep('the liveness probe of the default container'),
    keepReadinessProbe: keep('the readiness probe of the default container'),
    keepStartupProbe: keep('the startup probe of the default container'),
    keepTopologySpreadConstraints: keep('the topology spread constraints of the workload'),
    patchSpecOperations: Type.Optional(
      listOf(patchOperation, 128, {
        description: 'A JSON patch over the pod template (metadata and spec), applied after all other fields.',
      }),
    ),
  },
  {
    description:
      'How the access pod of a request differs from the pods of the workload. If absent, the access pod keeps all probes and the topology spread constraints. If present, even if empty, the default container loses each probe, and the pod the topology spread constraints, unless the keep… field is true.',
  },
);

export type ControllerTargetMutationConfig = Static<typeof controllerTargetMutationConfig>;
