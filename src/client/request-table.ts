import type { KubeObject } from '../api/object.ts';
import { formatTime, parseTime } from '../kit/clock.ts';
import { fullName, requesterOf, typeOf } from './access-requests.ts';
import type { Column, Presentation } from './output.ts';
import { isFinal, specOf, stateOf } from './request-state.ts';
import { span } from './times.ts';

export interface TableOptions {
  readonly who: boolean;
  readonly namespaces: boolean;
  /** Epoch ms. */
  readonly now: () => number;
}

export function requestTable({ who, namespaces, now }: TableOptions): Presentation<KubeObject> {
  const columns: readonly (Column<KubeObject> | false)[] = [
    namespaces && { title: 'NAMESPACE', text: ({ metadata }) => metadata.namespace ?? '' },
    { title: 'NAME', long: true, text: ({ metadata }) => metadata.name },
    { title: 'TYPE', text: typeOf },
    { title: 'TEMPLATE', text: (request) => specOf(request).templateName ?? '' },
    who && { title: 'WHO', text: requesterOf },
    { title: 'STATE', text: (request) => stateOf(request).state },
    { title: 'LEFT', text: (request) => leftOf(request, now()) },
    { title: 'POD', text: (request) => stateOf(request).pod },
    { title: 'UNTIL', wide: true, text: (request) => untilOf(request) },
    {
      title: 'AGE',
      wide: true,
      text: ({ metadata }) => span(now() - (parseTime(metadata.creationTimestamp ?? '') ?? now())),
    },
    { title: 'REASON', wide: true, text: (request) => specOf(request).reason ?? '' },
    { title: 'WHY', wide: true, long: true, text: (request) => stateOf(request).why },
  ];
  return { columns: columns.filter((one) => one !== false), object: (request) => request, name: fullName };
}

function leftOf(request: KubeObject, nowMs: number): string {
  const { state, endsMs } = stateOf(request);
  return endsMs === undefined || isFinal(state) ? '' : span(endsMs - nowMs);
}

function untilOf(request: KubeObject): string {
  const { endsMs } = stateOf(request);
  return endsMs === undefined ? '' : formatTime(endsMs);
}
