import type { KubeObject, Resource } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { findRequest, requestResource, typeNames } from '../access-requests.ts';
import { choicesOf } from '../choices.ts';
import { type ClusterConnection, inNamespace, serverNow } from '../cluster-connection.ts';
import { exits } from '../command-spec.ts';
import { shownParts } from '../commands/show.ts';
import { textIn } from '../journal.ts';
import { Problem, unlessForbidden } from '../problem.ts';
import { templateOf, versionOf } from '../voted-template.ts';
import { type Call, nameIn, Refusal } from './call.ts';
import { requestRow, withDecision } from './rows.ts';
import type { RequestPage, Section } from './wire.ts';

const MAX_EVENTS = 100;
/** The kind that `kubectl get events` lists. */
const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** Rejects with Refusal 404 if the request does not exist. */
export async function requestPage({ query, connection: all }: Call, clock: Clock): Promise<RequestPage> {
  const [namespace, name] = ['namespace', 'name'].map((field) => nameIn(query, field));
  const type = typeNames.find((one) => requestResource(one).kind === query.get('kind'));
  if (!type || !namespace || !name) throw new Refusal(400, 'namespace, kind, and name must name a request');
  const connection = inNamespace(all, namespace);
  const found = await findRequest(connection, `${type}/${name}`).catch((error: unknown) => {
    if (error instanceof Problem && error.exitCode === exits.failed) throw new Refusal(404, error.message);
    throw error;
  });
  const { object } = found;
  const [template, decision, shownEvents] = await Promise.all([
    templateOf(connection, found),
    choicesOf(connection)(object),
    eventsOf(connection, object),
  ]);
  const nowMs = serverNow(connection, clock);
  return {
    row: withDecision(requestRow(object, connection, nowMs), object, decision, nowMs),
    sections: await sectionsOf(shownParts(connection, found, template, nowMs)),
    templateVersion: template ? versionOf(template) : '',
    events: shownEvents,
  };
}

async function sectionsOf(parts: ReturnType<typeof shownParts>): Promise<Section[]> {
  const sections: Section[] = [];
  for await (const part of parts) {
    const { title, fields } = typeof part === 'string' ? { title: '', fields: [['Not shown', part] as const] } : part;
    const entries = fields
      .filter(([, value]) => value.length > 0)
      .map(([label, value]) => [label, typeof value === 'string' ? [value] : value] as const);
    const last = sections.at(-1);
    if (title !== '' || !last) sections.push({ title, entries });
    else sections.splice(-1, 1, { ...last, entries: [...last.entries, ...entries] });
  }
  return sections;
}

/** Oldest first. None if the user may not read them. */
async function eventsOf({ cluster }: ClusterConnection, { metadata }: KubeObject): Promise<RequestPage['events']> {
  const { namespace = '', uid = '' } = metadata;
  const fieldSelector = `involvedObject.uid=${uid}`;
  const found = await unlessForbidden(cluster.client.list(events, { namespace, fieldSelector }));
  if (found instanceof Error) return [];
  return found.items
    .map((event) => ({ atMs: timeOf(event), reason: textIn(event, 'reason'), message: textIn(event, 'message') }))
    .sort((a, b) => a.atMs - b.atMs)
    .slice(-MAX_EVENTS);
}

/** When it was last seen: the field depends on the API by which it was written. */
const timeOf = (event: KubeObject): number =>
  ['series.lastObservedTime', 'lastTimestamp', 'eventTime', 'metadata.creationTimestamp']
    .map((path) => parseTime(textIn(event, path)))
    .find((ms) => ms !== undefined) ?? 0;
