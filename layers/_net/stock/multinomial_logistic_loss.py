from . import StockLayer


class MultinomialLogisticLoss(StockLayer):
    """-log of the labels' probabilities, at least 1e-20; / N"""

    bottoms = (2, 2)
    is_loss = True

    def forward(self, probabilities, labels):
        items = probabilities.shape[0]
        own = probabilities.reshape(items, -1).gather(1, labels.reshape(-1, 1).long())
        floor = own.clamp(min=1e-20)
        # Caffe's gradient does not vanish below the floor.
        missing = (own - own.detach()) / floor.detach() - (floor - floor.detach()) / floor.detach()
        return -(floor.log() + missing).sum() / items
