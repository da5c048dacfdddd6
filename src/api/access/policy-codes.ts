import type { CodeTable } from '../code-table.ts';

/** Denials by what protects requests, templates, and the objects of grants. */
export const policyCodes = {
  FinalizerKept: {
    audience: 'operator',
    meaning:
      'The server removes its finalizer once it has revoked the access. Other clients need permission to update the subresource `finalizers` of the request.',
    remedy: 'Wait. If the request stays, check the log of the leader.',
  },
  StatusReserved: {
    audience: 'anyone',
    meaning: 'Only the server writes the status of requests and templates, and the reviews that emergencies owe.',
    remedy: 'Find out which client tries, and why.',
  },
  ProbeOnly: {
    audience: 'anyone',
    meaning:
      'The server creates the ConfigMap `drawbridge-probe` only as a dry run, which the policy `drawbridge-access` must deny. So it proves that the policy is in force.',
    remedy: 'Choose another name.',
  },
  EndKept: {
    audience: 'anyone',
    meaning: 'A request that ended gets no grant. The server never writes one.',
    remedy: 'Find out which client tries, and why. To get access again, create a new request.',
  },
  ReservedLabel: {
    audience: 'anyone',
    meaning: 'Only the server creates objects with the label `access.drawbridge.dev/request`.',
    remedy: 'Remove the label.',
  },
  MarkKept: {
    audience: 'anyone',
    meaning: 'The label and annotations by which the server recognizes an object of a grant cannot change.',
    remedy: 'Find out which client tries, and why.',
  },
  OwnerKept: {
    audience: 'anyone',
    meaning: 'The owner of an object of a grant cannot change.',
    remedy: 'Find out which client tries, and why.',
  },
  GrantKept: {
    audience: 'anyone',
    meaning:
      'The rules of the Role of a grant, and the subjects of its RoleBinding, cannot change. The server itself may only remove all subjects of a RoleBinding.',
    remedy: 'Find out which client tries, and why. To revoke the access, delete the request.',
  },
  ImageKept: {
    audience: 'anyone',
    meaning: 'The images of an access pod cannot change.',
    remedy: 'Find out which client tries, and why.',
  },
  ResourcesKept: {
    audience: 'anyone',
    meaning: 'CPU and memory of an access pod cannot change.',
    remedy: 'Find out which client tries, and why.',
  },
  MarkMissing: {
    audience: 'operator',
    meaning:
      'The ServiceAccount of the server created an object without the label, the annotations, or the owner of an object of a grant.',
    remedy:
      'The server never does this. Find out which client has its token, and delete the Pods of the server to revoke the token.',
  },
  GrantTooWide: {
    audience: 'operator',
    meaning: 'A ServiceAccount of drawbridge created a Role or RoleBinding wider than a grant.',
    remedy: 'As for `MarkMissing`.',
  },
  NotMadeByServer: {
    audience: 'operator',
    meaning: 'A ServiceAccount of drawbridge changed or deleted an object that belongs to no grant.',
    remedy: 'As for `MarkMissing`.',
  },
  ServerStaysOut: {
    audience: 'operator',
    meaning: 'The ServiceAccount of the server called a subresource of a pod, for example to enter or change the pod.',
    remedy: 'As for `MarkMissing`.',
  },
  GatewayStaysOut: {
    audience: 'operator',
    meaning:
      'The ServiceAccount of the gateway tried to connect in another way than by exec, attach, or port-forward to a pod.',
    remedy: 'As for `MarkMissing`, with the Pods of the gateway.',
  },
  WebhookKept: {
    audience: 'operator',
    meaning: 'A ServiceAccount of drawbridge changed more of a webhook configuration than `caBundle` and path.',
    remedy: 'As for `MarkMissing`.',
  },
  ApiServiceKept: {
    audience: 'operator',
    meaning:
      'The ServiceAccount of the gateway changed more of its APIService than `caBundle`, or the server changed the APIService or created another one than the chart.',
    remedy: 'As for `MarkMissing`, and also with the Pods of the gateway.',
  },
  SessionForged: {
    audience: 'anyone',
    meaning: 'Only the gateway creates and changes AccessSessions.',
    remedy: 'To end a session, delete its AccessSession.',
  },
  ReplicaLeaseOnly: {
    audience: 'operator',
    meaning:
      'The ServiceAccount of the gateway wrote a Lease other than those of its replicas and of its certificate, or an invalid address of a replica.',
    remedy: 'As for `MarkMissing`, with the Pods of the gateway.',
  },
} as const satisfies CodeTable;
