import { type Static, Type } from 'typebox';
import { anyJson, listOf, objectName, oneOf, opaqueObject, quantity, stringMap } from '../schema/fields.ts';

const argv = (description: string) => Type.Optional(listOf(Type.String({ maxLength: 32_768 }), 256, { description }));

const keep = (fields: string) =>
  Type.Optional(
    Type.Boolean({
      description: `Keeps ${fields}.`,
      default: false,
    }),
  );

const envVar = Type.Object({
  name: Type.String({ description: 'The name of the variable.', minLength: 1, maxLength: 1024 }),
  value: Type.Optional(Type.String({ description: 'The value of the variable.', maxLength: 131_072 })),
  valueFrom: Type.Optional(opaqueObject('As in a container of a Pod.')),
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
  { description: 'If not empty, they replace those of the default container.' },
);

const patchOperation = Type.Object(
  {
    op: oneOf(['add', 'remove', 'replace', 'move', 'copy', 'test'], { description: 'The operation, by RFC 6902.' }),
    path: Type.String({
      description: 'A JSON pointer into the pod template, for example /spec/containers/0/image.',
      maxLength: 1024,
      pattern: '^/(spec|metadata)(/([^/~]|~[01])*)*$',
    }),
    value: Type.Optional(anyJson('Any JSON, to add, replace with, or compare with.')),
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
        'The container that command, args, env, resources, and the keep…Probe fields change. Default: that of the annotation kubectl.kubernetes.io/default-container, else the first.',
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
        description: 'Removes the workload’s annotations before podAnnotations are added.',
        default: false,
      }),
    ),
    keepTerminationGracePeriod: Type.Optional(
      Type.Boolean({
        description:
          'Keeps the termination grace period of the workload, instead of at most one second. At the end of access, drawbridge always deletes the pod with one second; kubelets wait at least two.',
        default: false,
      }),
    ),
    keepServiceAccount: Type.Optional(
      Type.Boolean({
        description:
          'Runs the access pod under the ServiceAccount of the workload, for example for its cloud identity. Kubernetes mounts its token if patchSpecOperations sets automountServiceAccountToken to true. drawbridge also copies projected token volumes. By default, the pod runs under the ServiceAccount default, with the image pull secrets of the workload.',
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
      'How the access pod differs from the pods of the workload. If present, even if empty, the default container loses its probes, and the pod its topology spread constraints, unless the keep… field is true.',
  },
);

export type ControllerTargetMutationConfig = Static<typeof controllerTargetMutationConfig>;
