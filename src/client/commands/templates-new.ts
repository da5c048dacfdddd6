import { isObjectName } from '../../access/policy/names.ts';
import { accesses } from '../../api/access/kinds.ts';
import { templateKinds } from '../../api/access/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import { type Args, usageProblem } from '../args.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';

const workloadKinds = ['Deployment', 'StatefulSet', 'DaemonSet', 'Rollout'] as const;

export const templatesNew: Command = {
  name: 'templates new',
  summary: 'Print a template to start from, with comments',
  details:
    'Prints YAML that passes check once its workload exists. An ExecAccessTemplate also needs the gateway (features.gateway of the chart): without it, remove the line session. To use an option, remove the # before it. Makes no call. NAME is the name of the template; default: that of the workload, with -shell or -exec.',
  args: [{ name: 'NAME', optional: true }],
  flags: [
    {
      name: 'kind',
      value: 'KIND',
      help: 'PodAccessTemplate: requesters get a pod of their own. ExecAccessTemplate: a shell in a running pod. Default: PodAccessTemplate.',
      complete: templateKinds,
    },
    {
      name: 'workload',
      value: 'KIND/NAME',
      help: 'A Deployment, StatefulSet, DaemonSet, or Rollout, such as deployment/payments.',
      complete: workloadKinds.map((kind) => `${kind.toLowerCase()}/`),
    },
    {
      name: 'group',
      value: 'GROUP',
      repeated: true,
      help: 'Its members can request access; may be given more than once.',
    },
  ],
  examples: [
    'templates new --workload deployment/payments --group devs -n payments',
    'templates new --kind ExecAccessTemplate --workload statefulset/db',
  ],
  async run({ args, io }) {
    io.print(templateText(args));
    return exits.done;
  },
};

interface Workload {
  readonly kind: (typeof workloadKinds)[number];
  readonly name: string;
}

/** @throws Problem for a wrong argument */
function templateText(args: Args): string {
  const kind = kindOf(args.text('kind') ?? 'PodAccessTemplate');
  const workload = workloadOf(args.text('workload') ?? 'deployment/my-app');
  const isPod = kind === 'PodAccessTemplate';
  const name = args.positionals[0] ?? `${workload.name}-${isPod ? 'shell' : 'exec'}`;
  if (!isObjectName(name)) throw usageProblem(`${quote(name)} cannot be the name of a template`, 'templates new');
  const given = args.texts('group');
  const groups = (given.length === 0 ? ['my-team'] : given).map(yamlText).join(', ');
  const namespace = args.text('namespace');
  return `# To check this file: drawbridge check -f FILE. To store it: kubectl apply -f FILE.
# crds.wizardofoz.co is Oz's group, kept so that its manifests work.
apiVersion: ${apiVersionOf(accesses[0].template.resource)}
kind: ${kind}
metadata:
  name: ${yamlText(name)}
${namespace === undefined ? '' : `  namespace: ${yamlText(namespace)}\n`}spec:
${isPod ? '  # Requesters get a pod of their own: a copy of the pod of this workload.' : '  # Requesters get a shell in a running pod of this workload.'}
  controllerTargetRef:
    apiVersion: ${workload.kind === 'Rollout' ? 'argoproj.io/v1alpha1' : 'apps/v1'}
    kind: ${workload.kind}
    name: ${yamlText(workload.name)}
${isPod ? copyText : ''}  accessConfig:
    # Who can request access. They also need the ClusterRole drawbridge-requester in this namespace.
    allowedGroups: [${groups}]
    # How long access lasts if the request does not say, and at most.
    defaultDuration: 1h
    maxDuration: 4h
    # Who must approve. They also need the ClusterRole drawbridge-approver. Without approvals, access opens at once.
    approvals:
      all: [{name: peer, groups: [${groups}]}]
${isPod ? '' : gatewayText}    # What access allows besides exec, if the administrator permits it (grantable of the chart).
    #allow: [logs, port-forward]
    # A reason that each request must give.
    #reason: {minLength: 10, prompt: ticket and why}
    # How often, and how long in total, requesters can extend open access.
    #extension: {times: 1, total: 8h}
    # Groups whose members need no approval in an emergency. Another person reviews each use.
    #emergency: {groups: [${groups}], maxDuration: 30m}
${isPod ? podGatewayText : ''}`;
}

const copyText = `  # The copy waits for shells instead of running the workload again.
  controllerTargetMutationConfig:
    command: [sh, -c, 'sleep 86400']
`;

const gatewayText = `    # The gateway (features.gateway of the chart) ends sessions with access. If the cluster has none, remove this line:
    # open sessions then outlive access.
    session: {via: Gateway}
`;

const podGatewayText = `    # Sessions through the gateway (features.gateway of the chart), which can record them.
    #session: {via: Gateway, record: BestEffort}
`;

function kindOf(text: string): (typeof templateKinds)[number] {
  const kind = templateKinds.find((one) => one === text);
  if (kind) return kind;
  throw usageProblem(`--kind is ${quote(text)}; it must be ${templateKinds.join(' or ')}`, 'templates new');
}

function workloadOf(text: string): Workload {
  const [, kindText = '', name = ''] = /^([^/]*)\/(.*)$/.exec(text) ?? [];
  const kind = workloadKinds.find((one) => one.toLowerCase() === kindText.toLowerCase());
  if (kind && isObjectName(name)) return { kind, name };
  throw usageProblem(
    `--workload is ${quote(text)}; write KIND/NAME, with one of the kinds ${workloadKinds.join(', ')}`,
    'templates new',
  );
}

/** Quoted unless every reader takes the word for a text. */
const yamlText = (text: string): string =>
  /^[a-z][\w-]*$/i.test(text) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(text) ? text : JSON.stringify(text);
