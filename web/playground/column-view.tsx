// One model's side of the conversation: its rounds, the newest at the end.

import { placesOf, RoundView } from "./round-view.tsx";
import { chat, type Side, settings, sides, versions } from "./state.ts";
import { placeKey, type Round } from "./tree.ts";

export function ColumnView({ side: { model, rounds }, index }: { side: Side; index: number }) {
  const { startsAt } = chat.value;
  const from = rounds.findIndex(({ question }) => question.id === startsAt);
  const isAlone = sides.value.length === 1;
  return (
    <section class="column" aria-label={model}>
      {!isAlone && <h2>{model}</h2>}
      {rounds.map((round, i) => (
        <RoundView
          key={round.question.id}
          {...{ model, index, ...versionsAt(round, i === rounds.length - 1, isAlone ? null : model) }}
          question={round.question}
          answers={round.answers}
          reply={round.reply}
          number={i + 1}
          isNewest={i === rounds.length - 1}
          isLeftOut={i < from}
          isFirstSent={i === from && from > 0}
          view={settings.value.view}
        />
      ))}
    </section>
  );
}

/** Which of how many, as numbers, so that a round is drawn again only when they change. */
function versionsAt({ question, answers, reply }: Round, isNewest: boolean, model: string | null) {
  const questions = versions.value.questions.get(placeKey(question.after)) ?? [];
  const places = placesOf(question.id, isNewest, model);
  return {
    questionVersion: questions.indexOf(question.id),
    questionVersions: questions.length,
    answerVersion: places.findIndex(
      (place) => place.turn === answers?.id && (place.reply === reply || (isNewest && place.reply === 0)),
    ),
    answerVersions: places.length,
  };
}
