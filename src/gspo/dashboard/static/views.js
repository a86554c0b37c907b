/* The list of views, in the order in which they are declared. A view has:
   key, title, lead   what it is called
   names              the metrics it draws: nothing else is asked for
   usesSteps          "recorded" or "responses": which steps its slider goes over; left out: none
   mount(section)     builds its panels, once
   update(context)    fills them: {view, runs: [{id, slot, overview, table}], first, step, stepList, following} */
(function () {
  "use strict";
  const G = window.G;
  G.viewList = [];
  G.view = (view) => G.viewList.push(view);

  G.currentView = () => G.viewList.find((view) => view.key === G.state.get("view")) || G.viewList[0];

  G.goToView = function (at) {
    if (G.viewList[at]) G.state.set({ view: G.viewList[at].key });
  };

  G.turnView = function (by) {
    const at = G.viewList.indexOf(G.currentView());
    G.goToView((at + by + G.viewList.length) % G.viewList.length);
  };
})();
