import type { Medium } from '../sink.ts';
import { answerOf, post } from './https.ts';
import { type MessageText, textOf } from './text.ts';

/** To the URL of a workflow that posts the card which it receives. */
export const sendTeams: Medium = async (delivery) => {
  const body = JSON.stringify(teamsMessage(textOf(delivery.message)));
  return answerOf(await post(delivery, { body }));
};

interface RunStyle {
  readonly size?: 'Large';
  readonly weight?: 'Bolder';
  readonly fontType?: 'Monospace';
  readonly isSubtle?: true;
}

/** The only element whose text is not Markdown; functions such as DATE remain, so they are broken up. */
const run = (text: string, style: RunStyle = {}) => ({
  type: 'TextRun' as const,
  text: text.replace(/\{(?=\{)/g, '{ '),
  ...style,
});
const paragraph = (...inlines: ReturnType<typeof run>[]) => ({ type: 'RichTextBlock' as const, inlines });

/** An Adaptive Card, below the 28 KB that Teams accepts. */
export function teamsMessage({ title, lines, digest, footer, link, command }: MessageText) {
  const content = {
    type: 'AdaptiveCard',
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    version: '1.4',
    msteams: { width: 'Full' },
    body: [
      paragraph(run(title, { size: 'Large', weight: 'Bolder' })),
      ...lines.map(({ label, value }) => paragraph(run(`${label}: `, { weight: 'Bolder' }), run(value))),
      ...digest.map((line) => paragraph(run(line))),
      ...(command === undefined ? [] : [paragraph(run(command, { fontType: 'Monospace' }))]),
      paragraph(run(footer, { isSubtle: true })),
    ],
    ...(link === undefined ? {} : { actions: [{ type: 'Action.OpenUrl', title: 'Open', url: link }] }),
  };
  return {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  };
}
