import { durationBoundsOf } from '../../access/policy/emergency-policy.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import type { KubeObject } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import { dumpYaml } from '../../kube/yaml.ts';
import { describeRight, type RbacRule, rightsOf } from '../../rbac/rule-cover.ts';
import { findRequest, requesterOf, requestResource, requestWithFlags, type TypedObject } from '../access-requests.ts';
import { approversText } from '../approver-text.ts';
import { awaitedDecision, choicesOf } from '../choices.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command } from '../command.ts';
import { exits, requestArgument } from '../command-spec.ts';
import { askedPodOf, detailsOf } from '../details.ts';
import { awaitedExtension, extensionsText, latestEnd } from '../extension-text.ts';
import { windowsText } from '../option-text.ts';
import { type Field, fields, outputForm, printObject } from '../output.ts';
import { plainMessage, unlessForbidden } from '../problem.ts';
import { specOf, stateOf, templateSpecOf, unreadinessOf } from '../request-state.ts';
import { timeFrom } from '../times.ts';
import { templateOf, versionOf } from '../voted-template.ts';

export const show: Command = {
  name: 'show',
  summary: 'Show what a request would open, to decide about it',
  details:
    'Shows the request, the permissions that its template hands out, how it changes the pod of the workload, who must approve, and other present requests of the same person through it.',
  args: [requestArgument],
  examples: ['show payments-shell-x7k2p'],
  async run({ args, io, clock, connect }) {
    const form = outputForm(args);
    const connection = await connect();
    const found = await findRequest(connection, args.positionals[0] ?? '', 'list --everyone');
    if (printObject(io, form, found.object)) return exits.done;
    const template = await templateOf(connection, found);
    for await (const part of shownParts(connection, found, template, clock.now())) {
      if (typeof part === 'string') io.printError(`${part}\n`);
      else io.print(`${part.title === '' ? '' : `\n${part.title}\n`}${fields(part.fields)}`);
    }
    return exits.done;
  },
};

interface ShownSection {
  /** Empty for one that goes on with the section before it. */
  readonly title: string;
  readonly fields: readonly Field[];
}

/** Sections, and, as a text, what is not shown, and why. */
export async function* shownParts(
  connection: ClusterConnection,
  found: TypedObject,
  template: KubeObject | undefined,
  nowMs: number,
): AsyncGenerator<ShownSection | string> {
  const { object } = found;
  yield { title: '', fields: detailsOf(object, connection, nowMs, template) };
  if (!template) yield `the template ${specOf(object).templateName ?? ''} does not exist, or you may not read it`;
  else {
    yield { title: 'What it opens', fields: opensFields(template, object) };
    const decision = await decisionSection(connection, found, template, nowMs);
    if (decision) yield decision;
  }
  const history = await unlessForbidden(historyOf(connection, found));
  if (history instanceof Error) yield `not checked: other requests of this person: ${plainMessage(history)}`;
  else
    yield {
      title: 'Other requests of this person through this template (deleted ones are not listed)',
      fields: [['Requests', history]],
    };
}

/** What the user can decide, if anything, and the command for it. */
async function decisionSection(
  connection: ClusterConnection,
  { type, object }: TypedObject,
  template: KubeObject,
  nowMs: number,
): Promise<ShownSection | undefined> {
  const about = awaitedDecision(object);
  if (about === undefined || about === 'Review') return undefined;
  const { program } = connection;
  const target = requestWithFlags(connection, type, object.metadata.name);
  const extension = awaitedExtension(object);
  const end = extension && latestEnd(object, extension, template, nowMs);
  const endText =
    end && ('code' in end ? `${end.code}: ${end.message}` : `${timeFrom(end.endMs, nowMs)} at the latest`);
  const choice = (await choicesOf(connection)(object))?.choice ?? '';
  const approval = `${program} approve ${target} --template-version ${versionOf(template)}`;
  return {
    title: extension ? `What ${about} would do` : '',
    fields: [
      ['Asked', extension ? `${extension.by} more` : ''],
      ['New end', endText ?? ''],
      ['Approve this', choice === 'approve, deny' ? approval : ''],
      ['You can only', choice.startsWith('deny') ? `${choice}: ${program} deny ${target}` : ''],
    ],
  };
}

/** What access opens, when, how long, and who must approve it. */
function opensFields(template: KubeObject, request: KubeObject): readonly Field[] {
  const emergency = specOf(request).emergency === true;
  const askedPod = askedPodOf(request);
  const spec = templateSpecOf(template);
  const { accessConfig: config, controllerTargetRef: target } = spec;
  const rules = [
    'get, list, watch pods',
    ...(config?.exec === false ? [] : ['create, get pods/exec']),
    ...rightsOf((config?.rules ?? []) as readonly RbacRule[]).map(describeRight),
  ];
  return [
    ['Version', versionOf(template)],
    ['Not ready', awaitedDecision(request) === 'Access' ? unreadinessOf(template) : ''],
    ['Workload', target ? `${target.kind} ${target.name}` : ''],
    ['Permissions', [...rules, 'on the one pod only']],
    ['Granted to', config?.grantTo === 'AllowedGroups' ? `all of ${config.allowedGroups.join(', ')}` : 'the requester'],
    [
      'Pod',
      template.kind === 'PodAccessTemplate'
        ? podText(spec)
        : `${askedPod === '' ? '' : `${askedPod}, which must be `}a running pod of the workload, unchanged`,
    ],
    ['Start', emergency ? '' : windowsText(config?.start?.windows ?? [])],
    ['Longest', longestText(template, emergency)],
    ['Extensions', emergency ? 'none, because it is emergency access' : extensionsText(template)],
    [
      'Must approve',
      emergency ? 'no one; another person reviews emergency access' : approversText(template) || 'no one',
    ],
  ];
}

/** The maximum duration, and that of emergency access if it is shorter. */
function longestText(template: KubeObject, emergency: boolean): string {
  const config = (templateSpecOf(template).accessConfig ?? {}) as AccessConfig;
  const { maxDuration, isEmergencyMaximum } = durationBoundsOf({ emergency }, config);
  return isEmergencyMaximum
    ? `${maxDuration} in an emergency, otherwise ${config.maxDuration}`
    : (config.maxDuration ?? '');
}

function podText(spec: object): string[] {
  const podSpec = own(spec, 'podSpec');
  const config = own(spec, 'controllerTargetMutationConfig');
  // False is the default. The text about probes says what false removes.
  const changes = Object.fromEntries(Object.entries(config ?? {}).filter(([, value]) => value !== false));
  const caps = ['maxCpu', 'maxMemory', 'maxStorage']
    .filter((field) => own(spec, field) !== undefined)
    .map((field) => `${field}: ${String(own(spec, field))}`);
  return [
    podSpec === undefined
      ? `a copy of the pod of the workload, without its labels, except those that the server keeps for NetworkPolicies${config === undefined ? '' : ', and without probes that the template does not keep'}`
      : 'defined by the template:',
    ...(podSpec === undefined ? [] : [...dumpYaml(podSpec).trimEnd().split('\n')]),
    ...(Object.keys(changes).length === 0
      ? []
      : ['changed by the template:', ...dumpYaml(changes).trimEnd().split('\n')]),
    ...caps,
    ...(own(spec, 'allowPrivilegedPod') === true ? ['it may be privileged'] : []),
  ];
}

const maxOthers = 10;

/** Of the same person through the same template: the newest `maxOthers`. */
async function historyOf(
  { cluster, namespace }: ClusterConnection,
  { type, object }: TypedObject,
): Promise<readonly string[]> {
  const { items } = await cluster.client.list(requestResource(type), { namespace });
  const others = items.filter(
    (item) =>
      item.metadata.uid !== object.metadata.uid &&
      requesterOf(item) === requesterOf(object) &&
      specOf(item).templateName === specOf(object).templateName,
  );
  const lines = others
    .sort((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''))
    .map(
      (item) =>
        `${item.metadata.creationTimestamp ?? ''} ${stateOf(item).state} ${item.metadata.name} ${specOf(item).reason ?? ''}`,
    );
  const older = lines.length - maxOthers;
  if (lines.length === 0) return ['none that still exists'];
  return [...lines.slice(0, maxOthers), ...(older > 0 ? [`${older} older ones are not shown`] : [])];
}
