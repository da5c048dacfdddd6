import { type Static, Type } from 'typebox';
import { anyJson, listOf, objectName, opaqueObject, quantity, stringMap } from '../schema/fields.ts';

const argv = (description: string) => Type.Optional(listOf(Type.String({ maxLength: 32_768 }), 256, { description }));

const keep = (what: string) =>
  Type.Optional(
    Type.Boolean({ description: `Keep ${what}. Without it, it is taken off the access pod.`, default: false }),
  );

const envVar = Type.Object({
  name: Type.String({ description: 'The name of the variable.', minLength: 1, maxLength: 1024 }),
  value: Type.Optional(Type.String({ description: 'Its value.', maxLength: 131_072 })),
  valueFrom: Type.Optional(opaqueObject('Where its value comes from, as in a container of a Pod.')),
});

const quantities = (description: string) =>
  Type.Optional(Type.Record(Type.String(), quantity('The amount.'), { description, maxProperties: 64 }));

const resources = Type.Object(
  {
    limits: quantities('The most that the container may use.'),
    requests: quantities('What is set aside for the container.'),
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
  { description: 'The compute resources of the default container; replaces the workload’s when it is not empty.' },
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
    value: Type.Optional(anyJson('The value to add, to put in place or to compare with: any JSON.')),
    from: Type.Optional(Type.String({ description: 'The JSON pointer to move or copy from.', maxLength: 1024 })),
  },
  {
    'x-kubernetes-validations': [
      {
        rule: "!(self.op in ['move', 'copy']) || has(self.from)",
        message: 'move and copy need from: the JSON pointer of what is moved or copied',
        reason: 'FieldValueRequired',
        fieldPath: '.from',
      },
    ],
  },
);

/** How the pod that is made for a request differs from the workload's own pods. */
export const controllerTargetMutationConfig = Type.Object(
  {
    defaultContainerName: Type.Optional(
      objectName(
        'The container that the fields below change. Without it: the one that the annotation kubectl.kubernetes.io/default-container names, else the first.',
      ),
    ),
    command: argv('Replaces the command of the default container, and empties its args.'),
    args: argv('Replaces the args of the default container.'),
    env: Type.Optional(listOf(envVar, 256, { description: 'Variables to append to those of the default container.' })),
    resources: Type.Optional(resources),
    podAnnotations: Type.Optional(stringMap('Annotations to add to the access pod.', 65_536)),
    podLabels: Type.Optional(
      stringMap(
        'Labels to add to the access pod. Of the workload’s own labels those are kept that NetworkPolicies select by, unless something else would then select the access pod.',
        63,
      ),
    ),
    nodeSelector: Type.Optional(stringMap('Node labels to ask for in addition to the workload’s.', 63)),
    purgeAnnotations: Type.Optional(
      Type.Boolean({ description: 'Drop the workload’s annotations before podAnnotations are added.', default: false }),
    ),
    keepTerminationGracePeriod: Type.Optional(
      Type.Boolean({
        description:
          'Keep the termination grace period. Without it, it is one second at most. At the end of the access the pod gets no more than that either way.',
        default: false,
      }),
    ),
    keepServiceAccount: Type.Optional(
      Type.Boolean({
        description:
          'Run under the ServiceAccount of the workload, with its rights and cloud identity. Without it, under the ServiceAccount default, with the image pull secrets of the workload’s.',
        default: false,
      }),
    ),
    keepLivenessProbe: keep('the liveness probe of the default container'),
    keepReadinessProbe: keep('the readiness probe of the default container'),
    keepStartupProbe: keep('the startup probe of the default container'),
    keepTopologySpreadConstraints: keep('the topology spread constraints'),
    patchSpecOperations: Type.Optional(
      listOf(patchOperation, 128, {
        description: 'A JSON patch over the pod template (metadata and spec), applied after everything else.',
      }),
    ),
  },
  { description: 'How the pod that is made for a request differs from the workload’s own pods.' },
);

export type ControllerTargetMutationConfig = Static<typeof controllerTargetMutationConfig>;
