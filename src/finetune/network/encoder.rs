//! Token ids in, what the decoder attends to out.
//!
//! Never sees a mel.

use burn::tensor::{FloatDType, Tensor};

use super::arithmetic::to;
use super::{Batch, Dropout, Network, Parameters};
use crate::voice::names::{
    ENCODER_ALPHA, ENCODER_ATTENTION, ENCODER_ATTENTION_NORM, ENCODER_NORM, RELATIVE_POSITIONS,
    TOKEN_EMBEDDING, encoder_layer,
};

impl Network<'_> {
    /// `mask` is 0 for tokens and very negative for padding. -> [batch, tokens, hidden]
    pub(super) fn encode(
        &self,
        weights: &Parameters,
        batch: &Batch,
        mask: Tensor<4>,
        dropout: &mut Dropout,
    ) -> Tensor<3> {
        let mut x = self.embed(weights, batch, dropout);
        let relative = self.relative_positions(weights, batch.tokens());
        for layer in 0..self.config.encoder_layers {
            x = self.encoder_layer(weights, layer, [x, relative.clone()], mask.clone(), dropout);
        }
        x
    }

    /// The tokens with their places. -> [batch, tokens, hidden]
    pub(super) fn embed(&self, weights: &Parameters, batch: &Batch, dropout: &mut Dropout) -> Tensor<3> {
        let (math, rates) = (&self.arithmetic, &self.config.training);
        let (rows, tokens) = (batch.ids.len(), batch.tokens());
        let padded = |ids: &Vec<i64>| {
            let pad = self.config.pad_token_id;
            (0..tokens).map(|at| ids.get(at).copied().unwrap_or(pad)).collect::<Vec<_>>()
        };
        let ids = self.integers(batch.ids.iter().flat_map(padded).collect());
        let table: Tensor<2> = weights.get(TOKEN_EMBEDDING);
        let embedded = table.select(0, ids).reshape([rows, tokens, self.config.hidden_size]);
        let alpha: Tensor<1> = weights.get(ENCODER_ALPHA);
        let positions = math.stream(self.positions(tokens)) * math.stream(alpha).unsqueeze();
        let x = dropout.apply(math.stream(embedded) + positions, rates.positional_dropout);
        let x = self.norm(weights, ENCODER_NORM, x);
        dropout.apply(x, rates.hidden_dropout)
    }

    /// Layer `number` over the tokens [batch, tokens, hidden], whose distances are `relative`.
    pub(super) fn encoder_layer(
        &self,
        weights: &Parameters,
        number: usize,
        [x, relative]: [Tensor<3>; 2],
        mask: Tensor<4>,
        dropout: &mut Dropout,
    ) -> Tensor<3> {
        let layer = encoder_layer(number);
        let module = format!("{layer}.{ENCODER_ATTENTION}");
        let heads = self.config.encoder_attention_heads;
        let bias = |q| self.relative_scores(q, relative) + mask;
        let (attended, _) = self.attention(weights, &module, heads, [x.clone(), x.clone()], bias, dropout);
        let attended = dropout.apply(attended, self.config.training.hidden_dropout);
        let x = self.norm(
            weights,
            &format!("{layer}.{ENCODER_ATTENTION_NORM}"),
            self.arithmetic.add(x, attended),
        );
        self.feed_forward(weights, &layer, x, dropout)
    }

    /// The learned vector of every distance between two tokens. -> [tokens, tokens, head_dim]
    pub(super) fn relative_positions(&self, weights: &Parameters, tokens: usize) -> Tensor<3> {
        let reach = self.config.encoder_max_relative_position as i64;
        let tokens_i64 = tokens as i64;
        let distance =
            |from: i64| (0..tokens_i64).map(move |to| (from - to).clamp(-reach, reach - 1) + reach);
        let table: Tensor<2> = weights.get(RELATIVE_POSITIONS);
        let width = table.dims()[1];
        let distances = self.integers((0..tokens_i64).flat_map(distance).collect());
        table.select(0, distances).reshape([tokens, tokens, width])
    }

    /// Queries [batch, heads, tokens, head_dim] by the vectors of their distances. -> [batch, heads, tokens, tokens]
    fn relative_scores(&self, q: Tensor<4>, relative: Tensor<3>) -> Tensor<4> {
        let [batch, heads, tokens, width] = q.dims();
        let q = q.permute([2, 0, 1, 3]).reshape([1, tokens, batch * heads, width]);
        let relative = relative.swap_dims(1, 2).unsqueeze::<4>();
        let scores = self.arithmetic.matmul(q, relative).reshape([tokens, batch, heads, tokens]);
        to(scores.permute([1, 2, 0, 3]), FloatDType::F32)
    }
}
